import { describe, expect, it, vi } from 'vitest'
import { consume } from '../src/index.ts'
import {
  delivery,
  events,
  never,
  ofType,
  PLAIN,
  ScriptedTransport,
  scripted,
  unreachable,
  untilAborted,
  world,
} from './fixtures.ts'
import { publish } from '../src/events.ts'

/** A logger that keeps its lines. */
function recorder() {
  const lines: string[] = []
  return {
    lines,
    logger: {
      warn: (line: string) => void lines.push(`warn ${line}`),
      error: (line: string) => void lines.push(`error ${line}`),
    },
  }
}

const lost = (transport: ScriptedTransport, at: number) =>
  publish({ type: 'connection_lost', at, source: transport.source, error: new Error('reset') })

describe('the log of a consumer', () => {
  it('names each dead letter and why it was given up', async () => {
    const { send, start, clock } = world()
    const { lines, logger } = recorder()
    await start(
      () => {
        throw Object.assign(new RangeError('the amount\nis negative'), { code: 'E_AMOUNT' })
      },
      { logger, retry: { attempts: 2, backoff: { kind: 'fixed', delay: '1s' } } },
    )
    send({}, { id: 'm1' })
    await clock.advance('1m')
    expect(lines).toEqual([
      'warn orders: Message m1 is now a dead letter in orders.dlq (attempts_exhausted, 2 runs): RangeError: the amount is negative (E_AMOUNT)',
    ])
  })

  it('names a quarantined message', async () => {
    const { send, start, clock } = world()
    const { lines, logger } = recorder()
    await start(
      () => {
        throw new TypeError('x is undefined')
      },
      { logger, poison: {}, retry: { backoff: { kind: 'fixed', delay: '1s' } } },
    )
    send({}, { id: 'm1' })
    await clock.advance('1m')
    expect(lines).toEqual([
      'warn orders: Message m1 was quarantined in orders.dlq.quarantine.unknown (same_failure_repeated, 3 runs): TypeError: x is undefined',
    ])
  })

  it('reports a breaker once when it opens and once when it closes, with its dependency', async () => {
    const { send, start, clock } = world()
    const { lines, logger } = recorder()
    let isDown = true
    await start(
      () => {
        if (isDown) throw unreachable()
      },
      {
        logger,
        dependency: 'payments',
        random: () => 0.5,
        breaker: { trip: { kind: 'consecutive', failures: 2 }, minOpen: '10s', maxOpen: '10s' },
      },
    )
    for (let count = 0; count < 4; count++) send({})
    await clock.advance('45s')
    isDown = false
    await clock.advance('5m')
    expect(lines).toEqual([
      'warn orders: The breaker of "payments" opened: messages fail, so none is consumed, next probe in 10 s: Error: connect ECONNREFUSED',
      'warn orders: The breaker of "payments" closed: messages pass again.',
    ])
  })

  it('reports that messages become dead letters when the policy does not wait for the breaker', async () => {
    const { send, start, clock, deadLetters } = world()
    const { lines, logger } = recorder()
    await start(
      () => {
        throw unreachable()
      },
      {
        logger,
        random: () => 0.5,
        concurrency: 1,
        onBreakerOpen: 'deadLetter',
        breaker: { trip: { kind: 'consecutive', failures: 2 }, minOpen: '1m', maxOpen: '1m' },
      },
    )
    for (let count = 0; count < 4; count++) send({})
    await clock.advance('5s')
    expect(deadLetters()).toBeGreaterThan(0)
    expect(lines.filter((line) => line.includes('breaker'))).toContain(
      'warn orders: The breaker opened: messages fail, so each one becomes a dead letter without a run, next probe in 60 s: Error: connect ECONNREFUSED',
    )
  })

  it('reports a message that fails for more than four minutes, not later than that', async () => {
    const { send, start, clock } = world()
    const { lines, logger } = recorder()
    await start(
      () => {
        throw unreachable()
      },
      { logger, retry: { attempts: 4, backoff: { kind: 'fixed', delay: '2m' } } },
    )
    send({}, { id: 'm1' })
    await clock.advance('119s')
    expect(lines).toEqual([])
    await clock.advance('10s')
    expect(lines).toEqual([
      'warn orders: Message m1 failed 2 times in 2 min, next run in 2 min: Error: connect ECONNREFUSED',
    ])
  })

  it('reports a message whose first run took ten minutes, and none that fails immediately with such a timeout', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    await start(
      async ({ id }, { signal }) => {
        if (id === 'm1') await untilAborted(signal)
        throw unreachable()
      },
      { logger, timeout: '10m', retry: { backoff: { kind: 'fixed', delay: '10s' } } },
    )
    transport.deliver(delivery('m1'), delivery('m2'))
    await clock.advance('12m')
    expect(lines.map((line) => line.slice(0, 69))).toEqual([
      'warn orders: Message m1 failed 1 time in 0 ms, next run in 10 s: Redr',
    ])
  })

  it('reports a thrown value that has no text', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    await start(() => undefined, { logger })
    const error: unknown = Object.create(null)
    const { source } = transport
    publish({ type: 'user_code_failed', at: clock.now(), source, where: 'signature', error })
    expect(lines).toEqual(['error orders: signature failed: a value that has no text'])
  })

  it('reports handlers that do not end', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    await start(never, { logger, timeout: '1s', grace: '1s', concurrency: 1 })
    transport.deliver(delivery('m1'))
    await clock.advance('3s')
    expect(lines).toEqual([
      'error orders: The handler of message m1 did not end after its timeout. 1 handler of this consumer did not end. Pass context.signal to each call that waits.',
      'warn orders: Paused: handlers that do not end hold every slot.',
    ])
  })

  it.each([
    ['the broker took its delivery back', 'lost'],
    ['the consumer stopped', 'stopping'],
  ] as const)('reports a handler that does not end after %s', async (text, reason) => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    const seen = events()
    const consumer = await start(never, { logger, grace: '1s' })
    const one = delivery('m1')
    transport.deliver(one)
    await clock.settle()
    if (reason === 'lost') transport.receiver?.lost(one)
    const stopped = reason === 'lost' ? undefined : consumer.stop({ drain: '1s' })
    await clock.advance('2s')
    await stopped
    expect(ofType(seen, 'handler_hung')).toMatchObject([{ deliveryId: 'm1', reason }])
    expect(lines).toEqual([
      `error orders: The handler of message m1 did not end after ${text}. 1 handler of this consumer did not end. Pass context.signal to each call that waits.`,
    ])
  })

  it('reports a lost and a restored connection', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    await start(() => undefined, { logger })
    lost(transport, clock.now())
    publish({ type: 'connection_restored', at: clock.now(), source: transport.source })
    publish({ type: 'connection_restored', at: clock.now(), source: 'another queue' })
    expect(lines).toEqual([
      'error orders: Lost the connection to the broker, connecting again: Error: reset',
      'warn orders: Connected to the broker again.',
    ])
  })

  it('reports that no partition is assigned, when it stays like this for 30 s', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    const consumer = await start(() => undefined, { logger })
    const assign = (assigned: number) =>
      publish({ type: 'assignment_changed', at: clock.now(), source: transport.source, assigned })
    assign(0)
    await clock.advance('29s')
    assign(1)
    await clock.advance('1m')
    expect(lines).toEqual([])
    assign(0)
    await clock.advance('30s')
    expect(lines).toEqual([
      'warn orders: No partition is assigned to this consumer: others of its group have all of them. It consumes nothing.',
    ])
    assign(0)
    const stopped = consumer.stop()
    await clock.advance('1m')
    await stopped
    expect(lines).toHaveLength(1)
  })

  it('is limited to ten lines of a kind, then one every ten seconds that counts the omitted ones', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    await start(() => undefined, { logger })
    for (let count = 0; count < 25; count++) lost(transport, clock.now())
    expect(lines).toHaveLength(10)
    publish({ type: 'connection_restored', at: clock.now(), source: transport.source })
    expect(lines).toHaveLength(11)
    await clock.advance('9s')
    lost(transport, clock.now())
    expect(lines).toHaveLength(11)
    await clock.advance('1s')
    lost(transport, clock.now())
    expect(lines.at(-1)).toMatch(/\(16 similar lines omitted\)$/)
    lost(transport, clock.now())
    expect(lines).toHaveLength(12)
  })

  it('reports omitted lines after a minute when no other line follows', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    await start(() => undefined, { logger })
    for (let count = 0; count < 30; count++) lost(transport, clock.now())
    await clock.advance('59s')
    expect(lines).toHaveLength(10)
    await clock.advance('24h')
    expect(lines).toHaveLength(11)
    expect(lines[10]).toMatch(/Error: reset \(19 similar lines omitted\)$/)
  })

  it('reports omitted lines when its consumer stops, and leaves no timer', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    const consumer = await start(() => undefined, { logger })
    for (let count = 0; count < 12; count++) lost(transport, clock.now())
    const stopped = consumer.stop({ drain: 0 })
    await clock.advance('1s')
    await stopped
    expect(lines).toHaveLength(11)
    expect(lines[10]).toMatch(/\(1 similar line omitted\)$/)
    expect(clock.pending).toBe(0)
  })

  it('says nothing about messages that pass', async () => {
    const { send, start, clock } = world()
    const { lines, logger } = recorder()
    await start(() => undefined, { logger })
    for (let count = 0; count < 100; count++) send({})
    await clock.advance('1m')
    expect(lines).toEqual([])
  })

  it('ends with its consumer, and does not end that of another consumer of the source', async () => {
    const { clock, transport, start } = scripted()
    const other = scripted()
    const [one, two] = [recorder(), recorder()]
    const consumer = await start(() => undefined, { logger: one.logger })
    await other.start(() => undefined, { logger: two.logger })
    const stopped = consumer.stop()
    await clock.advance('1m')
    await stopped
    lost(transport, clock.now())
    expect([one.lines.length, two.lines.length]).toEqual([0, 1])
  })

  it('writes each event once when two consumers of a source share a logger', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    const consumer = await start(() => undefined, { logger })
    await scripted().start(() => undefined, { logger })
    lost(transport, clock.now())
    expect(lines).toHaveLength(1)
    const stopped = consumer.stop()
    await clock.advance('1m')
    await stopped
    lost(transport, clock.now())
    expect(lines).toHaveLength(2)
  })

  it('reports a breaker that another consumer of the dependency opened', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    const other = Object.assign(new ScriptedTransport(), { source: 'invoices' })
    const dependency = 'shared by two logs'
    const breaker = { trip: { kind: 'consecutive', failures: 2 }, minOpen: '10s' } as const
    const options = { ...PLAIN, dependency, breaker, random: () => 0.5, clock } as const
    await start(() => undefined, { ...options, logger })
    const fail = () => Promise.reject(unreachable())
    await consume(other, fail, { ...options, logger: 'off' })
    other.deliver(delivery('a', { source: 'invoices' }), delivery('b', { source: 'invoices' }))
    await clock.settle()
    expect(lines).toEqual([
      `warn orders: The breaker of "${dependency}" opened: messages fail, so none is consumed, next probe in 10 s: Error: connect ECONNREFUSED`,
    ])
    expect(transport.log.at(-1)).toBe('pause')
  })

  it('reports a breaker once to a logger of two consumers, when a third one without a log opened it', async () => {
    const { clock, start } = scripted()
    const { lines, logger } = recorder()
    const [second, failing] = ['payments', 'invoices'].map((source) =>
      Object.assign(new ScriptedTransport(), { source }),
    ) as [ScriptedTransport, ScriptedTransport]
    const breaker = { trip: { kind: 'consecutive', failures: 2 }, minOpen: '10s' } as const
    const options = { ...PLAIN, dependency: 'shared by three', breaker, clock, logger } as const
    await start(() => undefined, options)
    await consume(second, () => undefined, options)
    const fail = () => Promise.reject(unreachable())
    await consume(failing, fail, { ...options, logger: 'off' })
    failing.deliver(delivery('a', { source: 'invoices' }), delivery('b', { source: 'invoices' }))
    await clock.settle()
    expect(lines).toHaveLength(1)
  })

  it('reports a shared breaker once when all consumers of the dependency share a logger', async () => {
    const { clock, start } = scripted()
    const { lines, logger } = recorder()
    const other = Object.assign(new ScriptedTransport(), { source: 'invoices' })
    const dependency = 'shared by one log'
    const breaker = { trip: { kind: 'consecutive', failures: 2 }, minOpen: '10s' } as const
    const options = { ...PLAIN, dependency, breaker, random: () => 0.5, clock, logger } as const
    await start(() => undefined, options)
    await consume(other, () => Promise.reject(unreachable()), options)
    other.deliver(delivery('a', { source: 'invoices' }), delivery('b', { source: 'invoices' }))
    await clock.settle()
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('invoices: The breaker')
  })

  it('describes each of two consumers of a source name with its own policy', async () => {
    const { clock, start } = scripted()
    const { lines, logger } = recorder()
    const failing = scripted()
    await start(() => undefined, { logger, name: 'pausing', dependency: 'log of one' })
    await failing.start(() => Promise.reject(unreachable()), {
      logger,
      dependency: 'log of two',
      onBreakerOpen: 'deadLetter',
      breaker: { trip: { kind: 'consecutive', failures: 2 }, minOpen: '10s' },
    })
    failing.transport.deliver(delivery('a'), delivery('b'))
    await clock.settle()
    await failing.clock.settle()
    expect(lines[0]).toContain('each one becomes a dead letter without a run')
  })

  it('goes to stderr by default, one line each, and is silent when off', async () => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const { clock, transport, start } = scripted()
    const consumer = await start(() => undefined, { logger: undefined as never })
    lost(transport, clock.now())
    expect(written.mock.calls).toEqual([
      [
        expect.stringMatching(
          /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z redrive error orders: Lost the connection to the broker, connecting again: Error: reset\n$/,
        ),
      ],
    ])
    const stopped = consumer.stop()
    await clock.advance('1m')
    await stopped
    await scripted().start(() => undefined, { logger: 'off' })
    lost(transport, clock.now())
    expect(written).toHaveBeenCalledTimes(1)
    written.mockRestore()
  })

  it('has one line without control characters, whatever the producer sent', async () => {
    const { clock, transport, start } = scripted()
    const { lines, logger } = recorder()
    await start(
      () => {
        throw new TypeError('Failed to parse URL from https://user:s3cret@host/')
      },
      { logger, retry: { attempts: 1 } },
    )
    transport.deliver(delivery(`a\n2026 redrive error: forged\u2028\u001b[31m`))
    transport.deliver(delivery('x'.repeat(1_000)))
    await clock.settle()
    expect(lines[0]).toBe(
      'warn orders: Message a 2026 redrive error: forged [31m is now a dead letter (attempts_exhausted, 1 run): TypeError: Failed to parse URL from https://***@host/',
    )
    expect(lines[1]?.length).toBe('warn '.length + 601)
  })

  it('survives a logger whose promise rejects', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
    const { clock, transport, start } = scripted()
    const broken: () => unknown = () => Promise.reject(new Error('disk full'))
    await start(() => undefined, { logger: { warn: broken, error: broken } })
    lost(transport, clock.now())
    await clock.settle()
    expect(warned).toHaveBeenCalledWith(new Error('disk full'), 'RedriveLogger')
    warned.mockRestore()
  })

  it('survives a logger that throws', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
    const { clock, transport, start } = scripted()
    const broken = () => {
      throw new Error('disk full')
    }
    await start(() => undefined, { logger: { warn: broken, error: broken } })
    const seen = events()
    lost(transport, clock.now())
    expect(ofType(seen, 'connection_lost')).toHaveLength(1)
    expect(warned).toHaveBeenCalledWith(new Error('disk full'), 'RedriveLogger')
    warned.mockRestore()
  })
})
