import { setImmediate } from 'node:timers/promises'
import { resolvePolicy } from '@redrive/core'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { consume, Dependency, onEvent } from '../src/index.ts'
import {
  delivery,
  events,
  ofType,
  revoked,
  ScriptedTransport,
  unreachable,
  world,
  scripted,
} from './fixtures.ts'

describe('one bad message', () => {
  it('does not stop the other lanes when its failures point at the dependency', async () => {
    const { send, start, clock } = world()
    const handled: string[] = []
    await start(
      ({ id }) => {
        if (id === 'bad') throw unreachable()
        handled.push(id)
      },
      { order: 'lane', breaker: {}, outage: {}, adaptiveConcurrency: {}, random: () => 0.5 },
    )
    send({}, { id: 'bad', lane: 'a' })
    await clock.advance('1m')
    for (let lane = 0; lane < 20; lane++) send({}, { id: `m${lane}`, lane: `lane${lane}` })
    await clock.advance('10m')
    expect(handled.length).toBe(20)
  })
})

describe('a slow handler', () => {
  it('still gets its full concurrency', async () => {
    const { send, start, clock } = world()
    const consumer = await start(
      () => new Promise<void>((resolve) => void clock.after(6_000, resolve)),
      { timeout: '10s', concurrency: 20, adaptiveConcurrency: {} },
    )
    for (let count = 0; count < 2_000; count++) send({})
    await clock.advance('10m')
    expect(consumer.stats().concurrencyLimit).toBe(20)
    expect(consumer.stats().failed).toBe(0)
  })
})

describe('a lost connection', () => {
  it('does not count as a crash: a message whose handler continues is never quarantined', async () => {
    const { send, start, clock, broker, quarantined } = world()
    let runs = 0
    await start(
      () => {
        runs += 1
        return new Promise<void>((resolve) => void clock.after(20_000, resolve))
      },
      { poison: {} },
    )
    send({})
    for (let restart = 0; restart < 10; restart++) {
      await clock.advance('15s')
      broker.restart()
    }
    await clock.advance('1m')
    // A message whose fifth delivery ends with a crash is poison.
    expect(runs).toBeGreaterThan(5)
    expect(quarantined()).toBe(0)
  })
})

describe("onBreakerOpen: 'deadLetter'", () => {
  it('does not let messages wait for a dependency that is down', async () => {
    const { send, start, clock, backlog, drain } = world()
    let calls = 0
    await start(
      () => {
        calls += 1
        throw unreachable()
      },
      { onBreakerOpen: 'deadLetter', breaker: {}, flood: 'off', random: () => 0.5 },
    )
    for (let count = 0; count < 50; count++) send({})
    await clock.advance('900ms')
    expect(backlog()).toBeLessThan(10)
    expect(calls).toBeLessThan(25)
    const unrun = (await drain()).filter(({ reason }) => reason === 'breaker_open')
    expect(unrun.length).toBeGreaterThan(30)
    expect(
      unrun.some(({ delivery: { cycle } }) => cycle.history.at(-1)?.code === 'BREAKER_OPEN'),
    ).toBe(true)
  })
})

describe("a retry that waits in the process with onBreakerOpen: 'deadLetter'", () => {
  it('does not run while the breaker is open, and its dead letter has its failures', async () => {
    const { send, start, clock, drain } = world()
    const ran: string[] = []
    await start(
      ({ id }) => {
        ran.push(id)
        throw unreachable()
      },
      {
        onBreakerOpen: 'deadLetter',
        breaker: { trip: { kind: 'consecutive', failures: 3 }, minOpen: '10s' },
        flood: 'off',
        retry: { backoff: { kind: 'fixed', delay: '500ms', jitter: 'none' } },
      },
    )
    for (const id of ['a', 'b', 'c']) send({}, { id })
    await clock.advance('5s')
    expect(ran).toEqual(['a', 'b', 'c'])
    const codes = (await drain()).map(({ delivery: { cycle } }) =>
      cycle.history.map(({ code }) => code),
    )
    expect(codes).toHaveLength(3)
    expect(codes).toContainEqual(['ECONNREFUSED', 'BREAKER_OPEN'])
  })
})

describe('a breaker that is off', () => {
  it('ignores breakers opened by other consumers, but not a breaker that an operator isolated', async () => {
    const [one, other] = [world(), world()]
    const shared = new Dependency('stock')
    await one.start(() => Promise.reject(unreachable()), { dependency: shared, breaker: {} })
    const consumer = await other.start(() => undefined, { dependency: shared, breaker: 'off' })
    for (let count = 0; count < 10; count++) one.send({})
    await one.clock.settle()
    expect(shared.breaker.phase).toBe('open')
    other.send({})
    await other.clock.settle()
    expect(consumer.stats()).toMatchObject({ handled: 1, isPaused: false, breaker: 'closed' })
    shared.isolate()
    expect(consumer.stats().isPaused).toBe(true)
  })
})

describe('a failed start', () => {
  it('closes the transport and leaves no timer or listener', async () => {
    const transport = new ScriptedTransport()
    transport.receive = () => {
      throw new Error('no such queue')
    }
    const shared = new Dependency('stock')
    await expect(consume(transport, () => undefined, { dependency: shared })).rejects.toThrow(
      'no such queue',
    )
    expect(transport.log.at(-1)).toBe('close')
    shared.isolate()
    expect(transport.log.at(-1)).toBe('close')
  })

  it('reports why it failed, and logs that the transport did not close either', async () => {
    const transport = new ScriptedTransport()
    transport.open = () => Promise.reject(new Error('no such queue'))
    transport.close = () => Promise.reject(new Error('the socket is gone'))
    const lines: string[] = []
    const write = (line: string) => void lines.push(line)
    await expect(
      consume(transport, () => undefined, { logger: { warn: write, error: write } }),
    ).rejects.toThrow('no such queue')
    expect(lines).toEqual(['orders: close failed: Error: the socket is gone'])
  })
})

describe('a listener that fails', () => {
  it.each([
    [
      'by throwing',
      () => {
        throw new Error('the metrics client is broken')
      },
    ],
    ['by rejecting', () => Promise.reject(new Error('the metrics client is broken'))],
  ])('causes a warning and ends nothing: %s', async (_, listener) => {
    const { send, start, clock } = world()
    const warned: string[] = []
    const onWarning = (warning: Error) => void warned.push(warning.message)
    process.on('warning', onWarning)
    const end = onEvent(listener)
    const consumer = await start(() => undefined)
    send({})
    await clock.settle()
    end()
    await setImmediate()
    process.off('warning', onWarning)
    expect(consumer.stats().handled).toBe(1)
    expect(warned).toContain('the metrics client is broken')
  })
})

describe('a listener that throws a value that throws on each access', () => {
  it.each(['by throwing', 'by rejecting'])('causes a warning: %s', async (how) => {
    const { send, start, clock } = world()
    const warned: unknown[] = []
    const emitWarning = vi
      .spyOn(process, 'emitWarning')
      .mockImplementation((warning) => void warned.push(warning))
    onTestFinished(() => emitWarning.mockRestore())
    const fail = async () => {
      await Promise.resolve()
      throw revoked()
    }
    const end = onEvent(() => {
      if (how === 'by rejecting') return fail()
      throw revoked()
    })
    onTestFinished(end)
    const consumer = await start(() => undefined)
    send({})
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ handled: 1, failed: 0, settling: 0 })
    expect(warned).toEqual(['a value that has no text'])
  })
})

describe('a listener that always fails', () => {
  it.each([
    [
      'by throwing',
      () => {
        throw new Error('the metrics client is broken')
      },
    ],
    ['by rejecting', () => Promise.reject(new Error('the metrics client is broken'))],
  ])('warns ten times, then once every ten seconds with a count: %s', async (_, listener) => {
    const { send, start, clock } = world()
    const warned: unknown[] = []
    const emitWarning = vi
      .spyOn(process, 'emitWarning')
      .mockImplementation((warning) => void warned.push(warning))
    onTestFinished(() => emitWarning.mockRestore())
    onTestFinished(onEvent(listener))
    await start(() => undefined)
    for (let count = 0; count < 500; count++) send({})
    await clock.settle()
    expect(warned).toHaveLength(10)
    await clock.advance('10s')
    send({})
    await clock.settle()
    expect(warned).toHaveLength(11)
    expect(warned[10]).toBe('Error: the metrics client is broken (490 similar warnings omitted)')
  })
})

describe('a rule that throws', () => {
  it('is reported and does not match', async () => {
    const { send, start, clock, deadLetters } = world()
    const seen = events()
    const broken = () => {
      throw new Error('rule')
    }
    await start(() => Promise.reject(new Error('no')), {
      classify: [{ class: 'transient', when: broken }],
      retry: { attempts: 1 },
    })
    send({})
    await clock.settle()
    expect(ofType(seen, 'user_code_failed')).toMatchObject([{ where: 'classify' }])
    expect(deadLetters()).toBe(1)
  })
})

describe('a suspect that the broker takes back before its trial', () => {
  it('does not run, and consumption continues', async () => {
    const { clock, transport, start } = scripted()
    const pauseTakesEffect = transport.holdPause()
    const ran: string[] = []
    const consumer = await start(({ id }) => void ran.push(id), {
      poison: {},
    })
    const suspect = delivery('suspect', { deliveryCount: 4 })
    transport.deliver(suspect)
    await clock.settle()
    transport.receiver?.lost(suspect)
    pauseTakesEffect()
    await clock.settle()
    expect(ran).toEqual([])
    expect(consumer.stats().isPaused).toBe(false)
  })
})

describe('a suspect that the broker takes back while it runs', () => {
  it('continues alone, and the next suspect gets its own trial', async () => {
    const { clock, transport, start } = scripted()
    const ran: string[] = []
    const finish: (() => void)[] = []
    const consumer = await start(
      ({ id }) => {
        ran.push(id)
        return new Promise<void>((resolve) => finish.push(resolve))
      },
      { poison: {} },
    )
    const first = delivery('first', { deliveryCount: 3 })
    transport.deliver(first)
    await clock.settle()
    transport.receiver?.lost(first)
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ running: 1, isPaused: true })
    finish[0]?.()
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ running: 0, isPaused: false })
    transport.deliver(delivery('second', { deliveryCount: 3 }))
    await clock.settle()
    expect(ran).toEqual(['first', 'second'])
    expect(consumer.stats().isPaused).toBe(true)
  })
})

describe('a handler that returns a value that throws on each access', () => {
  it('fails like a handler that throws', async () => {
    const { send, start, clock, deadLetters } = world()
    const consumer = await start(() => revoked(), { retry: { attempts: 1 } })
    send({})
    await clock.settle()
    expect(deadLetters()).toBe(1)
    expect(consumer.stats()).toMatchObject({ running: 0, failed: 1 })
  })
})

describe('the stack of a failure', () => {
  it('is in the dead letter only when the policy includes it', async () => {
    for (const stack of [true, false]) {
      const { send, start, clock, broker } = world()
      await start(() => Promise.reject(new Error('no')), {
        deadLetter: { includeStack: stack },
        retry: { attempts: 1 },
      })
      send({})
      await clock.settle()
      const [deadLetter] = broker.contents('orders.dlq')
      expect(deadLetter?.headers['redrive-stack'] !== undefined).toBe(stack)
    }
  })
})

describe('the needs of the policy', () => {
  it('are passed to the transport', async () => {
    const transport = new ScriptedTransport()
    const asked: unknown[] = []
    transport.open = (...needs: unknown[]) => {
      asked.push(...needs)
      return Promise.resolve()
    }
    await consume(transport, () => undefined, { deadLetter: { retention: '3d' } })
    expect(asked).toEqual([{ deadLetterRetentionMs: 259_200_000, crashLimit: 6 }])
    expect(resolvePolicy({}).deadLetter.retentionMs).toBe(1_209_600_000)
  })
})
