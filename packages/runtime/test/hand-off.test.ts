import { isRedriveError } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { consume, type ConsumeOptions, type Enactment } from '../src/index.ts'
import { EVENT_CHANNEL } from '../src/events.ts'
import { missingCapabilities } from '../src/capabilities.ts'
import { resolvePolicy } from '@redrive/core'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import {
  delivery,
  events,
  never,
  ofType,
  ScriptedTransport,
  unreachable,
  world,
  scripted,
} from './fixtures.ts'

const UNKNOWN: Enactment = { kind: 'unknown', error: new Error('no response') }

describe('deliveries without a result of the broker', () => {
  it('are counted as settling, after a success and after a failure', async () => {
    const { clock, transport, start } = scripted()
    const results: ((enactment: Enactment) => void)[] = []
    transport.result = () => new Promise((resolve) => results.push(resolve))
    const consumer = await start(
      ({ id }) => {
        if (id === 'bad') throw new Error('no')
      },
      { retry: { attempts: 1 } },
    )
    transport.deliver(delivery('good'), delivery('bad'))
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ running: 0, waiting: 0, settling: 2 })
    results[1]?.(UNKNOWN)
    await clock.advance('10s')
    expect(consumer.stats().settling).toBe(2)
    for (const resolve of results) resolve({ kind: 'done', destination: 'settled', truncated: 0 })
    await clock.settle()
    expect(consumer.stats().settling).toBe(0)
  })
})

describe('hand-offs that wait for the broker', () => {
  const failing = async (options: ConsumeOptions) => {
    const { clock, transport, start } = scripted()
    const results: (() => void)[] = []
    transport.result = () =>
      new Promise((resolve) => {
        results.push(() => resolve({ kind: 'done', destination: 'dead_letter', truncated: 0 }))
      })
    let running = 0
    const handler = ({ id }: { readonly id: string }) => {
      running += 1
      if (id.startsWith('slow')) return never()
      running -= 1
      throw new Error('no')
    }
    await start(handler, { retry: { attempts: 1 }, ...options })
    const limits = () => transport.log.filter((one) => one.startsWith('limit'))
    return { clock, transport, results, limits, running: () => running }
  }

  it('leave room for other messages, but not for more handlers', async () => {
    const { clock, transport, limits, running } = await failing({ concurrency: 4 })
    transport.deliver(delivery('a'))
    await clock.settle()
    expect(limits()).toEqual(['limit 4'])
    transport.deliver(delivery('b'))
    transport.deliver(delivery('c'))
    await clock.settle()
    expect(limits()).toEqual(['limit 4', 'limit 12'])
    transport.deliver(...['1', '2', '3', '4', '5'].map((one) => delivery(`slow ${one}`)))
    expect(running()).toBe(4)
  })

  it('release the room when hand-offs do not wait any more', async () => {
    const { clock, transport, results, limits } = await failing({ concurrency: 4 })
    transport.deliver(delivery('a'), delivery('b'))
    await clock.settle()
    for (const confirm of results) confirm()
    await clock.advance('9s')
    transport.deliver(delivery('c'))
    await clock.settle()
    expect(limits().at(-1)).toBe('limit 12')
    results.at(-1)?.()
    await clock.advance('1s')
    transport.deliver(delivery('d'))
    await clock.settle()
    expect(limits().at(-1)).toBe('limit 4')
  })

  it.each([
    ['one message at a time', { concurrency: 1 }],
    ['lane order', { concurrency: 4, order: 'lane' }],
  ] as const)('leave no room with %s', async (_, options) => {
    const { clock, transport, limits } = await failing(options)
    transport.deliver(...['a', 'b', 'c', 'd'].map((one) => delivery(one)))
    await clock.settle()
    expect(limits()).toEqual([`limit ${options.concurrency}`])
  })
})

describe('a hand-off with an unknown outcome', () => {
  it('is repeated until it is known, and stops no other delivery', async () => {
    let isRefusing = true
    const { send, start, clock, backlog, deadLetters } = world({
      between: (connection) => ({
        publish: (...request) => {
          if (isRefusing) throw new Error('refused')
          return connection.publish(...request)
        },
        subscribe: (...request) => connection.subscribe(...request),
        take: (...request) => connection.take(...request),
        ack: (tag) => connection.ack(tag),
        release: (tag) => connection.release(tag),
        depth: (queue) => connection.depth(queue),
        queues: (prefix) => connection.queues(prefix),
        close: () => connection.close(),
      }),
    })
    const seen = events()
    let calls = 0
    const consumer = await start(
      ({ id }) => {
        calls += 1
        if (id === 'bad') throw new Error('no')
      },
      { retry: { attempts: 1 } },
    )
    send({}, { id: 'bad' })
    await clock.settle()
    expect(consumer.stats().isPaused).toBe(false)
    await clock.advance('1m')
    expect(consumer.stats()).toMatchObject({ isPaused: false, concurrencyLimit: 1 })
    for (let count = 0; count < 5; count++) send({})
    await clock.advance('1m')
    expect([calls, backlog(), deadLetters()]).toEqual([6, 1, 0])
    isRefusing = false
    await clock.advance('10s')
    expect([calls, backlog(), deadLetters()]).toEqual([6, 0, 1])
    expect(consumer.stats().concurrencyLimit).toBeGreaterThan(1)
    expect(ofType(seen, 'hand_off_stuck').map(({ deliveryId }) => deliveryId)).toEqual(['bad'])
  })

  it('pauses consumption when as many are stuck as may run', async () => {
    const { clock, transport, start } = scripted()
    const seen = events()
    transport.result = () => UNKNOWN
    const consumer = await start(() => Promise.reject(new Error('no')), {
      concurrency: 2,
      retry: { attempts: 1 },
    })
    transport.deliver(delivery('a'))
    await clock.advance('1m')
    expect(consumer.stats().isPaused).toBe(false)
    transport.deliver(delivery('b'))
    await clock.advance('1m')
    expect(consumer.stats().isPaused).toBe(true)
    expect(ofType(seen, 'consumer_paused').map(({ reason }) => reason)).toEqual([
      'hand_off_failing',
    ])
    transport.result = () => ({ kind: 'done', destination: 'quarantine', truncated: 0 })
    await clock.advance('10s')
    expect(consumer.stats().isPaused).toBe(false)
  })

  it('is repeated with the same decision and growing delays', async () => {
    const { clock, transport, start } = scripted()
    transport.result = () => UNKNOWN
    await start(() => Promise.reject(new Error('no')), {
      retry: { attempts: 1 },
    })
    transport.deliver(delivery('a'))
    await clock.advance('1s')
    const quick = transport.decisions.length
    await clock.advance('1h')
    const slow = transport.decisions.length - quick
    expect(quick).toBeGreaterThanOrEqual(3)
    expect(slow).toBeLessThanOrEqual(3_600 / 5 + 1)
    expect(slow).toBeGreaterThan(700)
    expect(new Set(transport.decisions.map(({ decision }) => decision)).size).toBe(1)
  })

  it('does not pause consumption for one or two unknown results', async () => {
    const { clock, transport, start } = scripted()
    let results = 0
    transport.result = () =>
      ++results <= 2 ? UNKNOWN : { kind: 'done', destination: 'dead_letter', truncated: 0 }
    const consumer = await start(() => Promise.reject(new Error('no')), {
      retry: { attempts: 1 },
    })
    transport.deliver(delivery('a'))
    await clock.advance('10s')
    expect(results).toBe(3)
    expect(transport.log).not.toContain('pause')
    expect(consumer.stats().isPaused).toBe(false)
  })

  it('of an acknowledgement is repeated as well', async () => {
    const { clock, transport, start } = scripted()
    let results = 0
    transport.result = () =>
      ++results < 3 ? UNKNOWN : { kind: 'done', destination: 'settled', truncated: 0 }
    await start(() => undefined)
    transport.deliver(delivery('a'))
    await clock.advance('10s')
    expect(transport.log.filter((line) => line === 'settle a').length).toBe(3)
  })

  it('is not repeated when the delivery is lost', async () => {
    const { clock, transport, start } = scripted()
    transport.result = () => ({ kind: 'lost' })
    await start(() => undefined)
    transport.deliver(delivery('a'))
    await clock.advance('1h')
    expect(transport.decisions.length).toBe(1)
  })
})

describe('a hand-off that the broker rejects', () => {
  const REFUSED = {
    kind: 'refused',
    error: new Error('no permission to write'),
    isTooLarge: false,
  } as const

  it('is repeated with the same decision; event, log and health contain the words of the broker', async () => {
    const { clock, transport, start } = scripted()
    const seen = events()
    const lines: string[] = []
    const logger = { warn: () => undefined, error: (line: string) => void lines.push(line) }
    let result: Enactment = REFUSED
    transport.result = () => result
    const consumer = await start(() => Promise.reject(new Error('no')), {
      retry: { attempts: 1 },
      logger,
    })
    transport.deliver(delivery('a'))
    await clock.advance('10s')
    expect(new Set(transport.decisions.map(({ decision }) => decision)).size).toBe(1)
    expect(ofType(seen, 'hand_off_stuck')).toMatchObject([{ deliveryId: 'a', isRefused: true }])
    expect(lines).toEqual([
      expect.stringContaining(
        'The broker rejects the copy of message a, trying again: Error: no permission to write',
      ),
    ])
    expect(consumer.health()).toMatchObject({
      status: 'degraded',
      reasons: ['The broker does not store copies: Error: no permission to write'],
    })
    result = { kind: 'done', destination: 'dead_letter', truncated: 0 }
    await clock.advance('10s')
    expect(consumer.health().status).toBe('up')
  })

  it('becomes a dead letter when it is a retry that is too large', async () => {
    const { clock, transport, start } = scripted()
    transport.result = (_, { kind }) =>
      kind === 'retryAt'
        ? { ...REFUSED, isTooLarge: true }
        : { kind: 'done', destination: 'dead_letter', truncated: 0 }
    await start(() => Promise.reject(unreachable()), {
      retry: { backoff: { kind: 'fixed', delay: '1m' } },
    })
    transport.deliver(delivery('a'))
    await clock.settle()
    expect(transport.log.slice(-2)).toEqual(['retryAt a', 'deadLetter a'])
    const [retry, last] = transport.decisions.map(({ decision }) => decision).slice(-2)
    expect(last).toMatchObject({ kind: 'deadLetter', reason: 'too_large' })
    expect(last).toMatchObject({ failure: { code: 'ECONNREFUSED' }, cycle: { runs: 1 } })
    expect(retry).toMatchObject({ kind: 'retryAt' })
  })

  it('is returned without its failures when it is too large and the consumer only stops', async () => {
    const { clock, transport, start } = scripted()
    transport.result = (_, { kind }) =>
      kind === 'retryAt'
        ? { ...REFUSED, isTooLarge: true }
        : { kind: 'done', destination: 'returned', truncated: 0 }
    const retry = { backoff: { kind: 'fixed', delay: '500ms' }, maxInlineDelay: '1s' } as const
    const consumer = await start(() => Promise.reject(unreachable()), { retry })
    transport.deliver(delivery('a'))
    await clock.settle()
    expect(transport.log).not.toContain('retryAt a')
    await Promise.all([consumer.stop(), clock.advance('1s')])
    expect(transport.log.filter((line) => line.endsWith(' a'))).toEqual(['retryAt a', 'pause a'])
  })

  it('is repeated when it is a dead letter that is too large', async () => {
    const { clock, transport, start } = scripted()
    transport.result = () => ({ ...REFUSED, isTooLarge: true })
    await start(() => Promise.reject(new Error('no')), { retry: { attempts: 1 } })
    transport.deliver(delivery('a'))
    await clock.advance('10s')
    const decisions = transport.decisions.map(({ decision }) => decision)
    expect(decisions.length).toBeGreaterThan(3)
    expect(new Set(decisions).size).toBe(1)
  })
})

describe('a transport that throws', () => {
  it('is called again as after an unknown result, and the consumer continues', async () => {
    const { clock, transport, start } = scripted()
    const seen = events()
    let throws = 5
    transport.result = (one) => {
      if (one.id === 'a' && throws-- > 0) throw new Error('the channel is closed')
      return { kind: 'done', destination: 'settled', truncated: 0 }
    }
    const consumer = await start(() => undefined)
    transport.deliver(delivery('a'), delivery('b'))
    await clock.advance('1m')
    expect(transport.log.filter((line) => line === 'settle a').length).toBe(6)
    expect(ofType(seen, 'hand_off_stuck').map(({ deliveryId }) => deliveryId)).toEqual(['a'])
    expect(consumer.stats()).toMatchObject({
      handled: 2,
      running: 0,
      isPaused: false,
      concurrencyLimit: 10,
    })
  })

  it.each(['pause', 'resume', 'limit'] as const)(
    'on %s is reported, and the consumer continues',
    async (what) => {
      const { clock, transport, start } = scripted()
      const seen = events()
      const consumer = await start(() => undefined, {
        concurrency: 5,
      })
      transport[what] = () => {
        throw new Error('the channel is closed')
      }
      consumer.pause()
      consumer.resume()
      consumer.dependency.isolate()
      consumer.dependency.restore()
      await clock.settle()
      const where = ofType(seen, 'user_code_failed').map((event) => event.where)
      expect(new Set(where)).toEqual(new Set(what === 'limit' ? [] : [`transport.${what}`]))
      transport.deliver(delivery('a'))
      await clock.settle()
      expect(consumer.stats()).toMatchObject({ handled: 1, isPaused: false })
    },
  )
})

describe('a delivery that the broker took back', () => {
  it('does not run when it was still waiting', async () => {
    const { clock, transport, start } = scripted()
    const ran: string[] = []
    const finish: (() => void)[] = []
    await start(
      ({ id }) => {
        ran.push(id)
        return new Promise<void>((resolve) => finish.push(resolve))
      },
      { concurrency: 1 },
    )
    const waiting = delivery('b')
    transport.deliver(delivery('a'), waiting, delivery('c'))
    transport.receiver?.lost(waiting)
    for (let count = 0; count < 3; count++) {
      finish.shift()?.()
      await clock.settle()
    }
    expect(ran).toEqual(['a', 'c'])
  })

  it('does not run when it was waiting for an inline retry', async () => {
    const { clock, transport, start } = scripted()
    let calls = 0
    await start(
      () => {
        calls += 1
        throw unreachable()
      },
      { retry: { backoff: { kind: 'fixed', delay: '500ms' } } },
    )
    const held = delivery('a')
    transport.deliver(held)
    await clock.settle()
    transport.receiver?.lost(held)
    await clock.advance('10s')
    expect([calls, transport.decisions.length]).toEqual([1, 0])
  })
})

describe('a policy that the transport cannot run', () => {
  it('is rejected at start, with an explanation of the fix', async () => {
    const { start } = world({ capabilities: { ordering: 'none', delay: { kind: 'none' } } })
    const refused = await start(() => undefined, { order: 'lane' }).catch((error: unknown) => error)
    expect(isRedriveError(refused, 'CAPABILITY_MISSING')).toBe(true)
    expect(String(refused)).toMatch(
      /^RedriveError: The transport of "orders" cannot run this policy:\n- order: 'lane' needs a transport that keeps order/,
    )
    expect(String(refused)).toContain("Use order: 'none'")
  })

  it('lists every class whose backoff needs a delay', () => {
    const capabilities = world({ capabilities: { delay: { kind: 'none' } } }).transport()
      .capabilities
    const problems = missingCapabilities(resolvePolicy(), capabilities)
    expect(problems.length).toBe(2)
    expect(problems[0]).toMatch(
      /^retry.classes.transient: a backoff of up to 1m needs delayed delivery/,
    )
    expect(problems[1]).toMatch(
      /^retry.classes.unknown: .*Keep backoff below retry.maxInlineDelay \(1s\)/,
    )
  })

  it('runs when it needs only existing capabilities', () => {
    const capabilities = world({ capabilities: { delay: { kind: 'none' } } }).transport()
      .capabilities
    const short = resolvePolicy({ retry: { backoff: { kind: 'fixed', delay: '500ms' } } })
    expect(missingCapabilities(short, capabilities)).toEqual([])
    expect(missingCapabilities(resolvePolicy({ retry: { attempts: 1 } }), capabilities)).toEqual([])
    const inOrder = resolvePolicy({ order: 'lane' })
    expect(missingCapabilities(inOrder, capabilities)).toEqual([])
  })

  it('does not open the transport when it is rejected', async () => {
    const transport = new ScriptedTransport({ ordering: 'none' })
    await expect(consume(transport, () => undefined, { order: 'lane' })).rejects.toThrow(/order/)
    await expect(consume(transport, () => undefined, { timeout: -1 })).rejects.toThrow(/timeout/)
    expect(transport.log).toEqual([])
  })
})

describe('events', () => {
  it('are published on one named channel', async () => {
    const { send, start, clock } = world()
    const seen: unknown[] = []
    const listener = (event: unknown) => void seen.push(event)
    subscribe(EVENT_CHANNEL, listener)
    await start(() => undefined)
    send({}, { id: 'a' })
    await clock.settle()
    unsubscribe(EVENT_CHANNEL, listener)
    send({}, { id: 'b' })
    await clock.settle()
    expect(seen).toMatchObject([
      { type: 'enacted', deliveryId: 'a', source: 'orders', at: clock.now() },
    ])
  })

  it('cost nothing without a listener: a settled delivery is not read again', async () => {
    const { clock, transport, start } = scripted()
    let looks = 0
    const watched = Object.defineProperty(delivery('a'), 'source', {
      get: () => {
        looks += 1
        return 'orders'
      },
    })
    await start(() => undefined)
    transport.deliver(watched)
    await clock.settle()
    expect([transport.decisions.length, looks]).toEqual([1, 0])
  })

  it('report unreadable headers', async () => {
    const { send, start, clock } = world()
    const seen = events()
    await start(() => undefined)
    send({}, { id: 'a', headers: { 'redrive-version': '1', 'redrive-attempt': 'x' } })
    await clock.settle()
    expect(ofType(seen, 'headers_unreadable')).toMatchObject([
      { deliveryId: 'a', problems: ['redrive-attempt: expected a whole number'] },
    ])
  })
})
