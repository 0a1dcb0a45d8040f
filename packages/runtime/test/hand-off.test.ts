import { isRedriveError } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { consume, EVENT_CHANNEL, type Enactment, missingCapabilities } from '../src/index.ts'
import { resolvePolicy } from '@redrive/core'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import {
  delivery,
  events,
  ofType,
  PLAIN,
  ScriptedTransport,
  unreachable,
  world,
} from './fixtures.ts'

const UNKNOWN: Enactment = { kind: 'unknown', error: new Error('no answer') }

describe('what the broker has not answered for', () => {
  it('is counted as being enacted, whether it succeeded or failed', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    const answers: ((enactment: Enactment) => void)[] = []
    transport.answer = () => new Promise((resolve) => answers.push(resolve))
    const consumer = await consume(
      transport,
      ({ id }) => {
        if (id === 'bad') throw new Error('no')
      },
      { ...PLAIN, clock, retry: { attempts: 1 } },
    )
    transport.deliver(delivery('good'), delivery('bad'))
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ running: 0, waiting: 0, enacting: 2 })
    answers[1]?.(UNKNOWN)
    await clock.advance('10s')
    expect(consumer.stats().enacting).toBe(2)
    for (const answer of answers) answer({ kind: 'done', place: 'settled', truncated: 0 })
    await clock.settle()
    expect(consumer.stats().enacting).toBe(0)
  })
})

describe('a hand-off whose outcome is unknown', () => {
  it('is asked again until it is known, and stops nobody else meanwhile', async () => {
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
    expect(consumer.stats()).toMatchObject({ isPaused: false, allowed: 1 })
    for (let count = 0; count < 5; count++) send({})
    await clock.advance('1m')
    expect([calls, backlog(), deadLetters()]).toEqual([6, 1, 0])
    isRefusing = false
    await clock.advance('10s')
    expect([calls, backlog(), deadLetters()]).toEqual([6, 0, 1])
    expect(consumer.stats().allowed).toBeGreaterThan(1)
    expect(ofType(seen, 'hand_off_stuck').map(({ deliveryId }) => deliveryId)).toEqual(['bad'])
  })

  it('pauses consumption when as many are stuck as may run', async () => {
    const { clock } = world()
    const seen = events()
    const transport = new ScriptedTransport()
    transport.answer = () => UNKNOWN
    const consumer = await consume(transport, () => Promise.reject(new Error('no')), {
      ...PLAIN,
      clock,
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
    transport.answer = () => ({ kind: 'done', place: 'quarantine', truncated: 0 })
    await clock.advance('10s')
    expect(consumer.stats().isPaused).toBe(false)
  })

  it('is asked again with the same decision, ever more slowly', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    transport.answer = () => UNKNOWN
    await consume(transport, () => Promise.reject(new Error('no')), {
      ...PLAIN,
      clock,
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

  it('does not pause consumption for one or two unknown answers', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    let answers = 0
    transport.answer = () =>
      ++answers <= 2 ? UNKNOWN : { kind: 'done', place: 'dead_letter', truncated: 0 }
    const consumer = await consume(transport, () => Promise.reject(new Error('no')), {
      ...PLAIN,
      clock,
      retry: { attempts: 1 },
    })
    transport.deliver(delivery('a'))
    await clock.advance('10s')
    expect(answers).toBe(3)
    expect(transport.log).not.toContain('pause')
    expect(consumer.stats().isPaused).toBe(false)
  })

  it('of an acknowledgement is asked again as well', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    let answers = 0
    transport.answer = () =>
      ++answers < 3 ? UNKNOWN : { kind: 'done', place: 'settled', truncated: 0 }
    await consume(transport, () => undefined, { ...PLAIN, clock })
    transport.deliver(delivery('a'))
    await clock.advance('10s')
    expect(transport.log.filter((line) => line === 'settle a').length).toBe(3)
  })

  it('is not asked again when the delivery is no longer ours', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    transport.answer = () => ({ kind: 'lost' })
    await consume(transport, () => undefined, { ...PLAIN, clock })
    transport.deliver(delivery('a'))
    await clock.advance('1h')
    expect(transport.decisions.length).toBe(1)
  })
})

describe('a transport that throws', () => {
  it('is asked again, like one that does not know, and the consumer lives on', async () => {
    const { clock } = world()
    const seen = events()
    const transport = new ScriptedTransport()
    let throws = 5
    transport.answer = (one) => {
      if (one.id === 'a' && throws-- > 0) throw new Error('the channel is closed')
      return { kind: 'done', place: 'settled', truncated: 0 }
    }
    const consumer = await consume(transport, () => undefined, { ...PLAIN, clock })
    transport.deliver(delivery('a'), delivery('b'))
    await clock.advance('1m')
    expect(transport.log.filter((line) => line === 'settle a').length).toBe(6)
    expect(ofType(seen, 'hand_off_stuck').map(({ deliveryId }) => deliveryId)).toEqual(['a'])
    expect(consumer.stats()).toMatchObject({ handled: 2, running: 0, isPaused: false, allowed: 10 })
  })

  it.each(['pause', 'resume', 'limit'] as const)(
    'on %s is reported, and nothing breaks',
    async (what) => {
      const { clock } = world()
      const seen = events()
      const transport = new ScriptedTransport()
      const consumer = await consume(transport, () => undefined, {
        ...PLAIN,
        clock,
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
  it('does not run any more when it was still waiting', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    const ran: string[] = []
    const finish: (() => void)[] = []
    await consume(
      transport,
      ({ id }) => {
        ran.push(id)
        return new Promise<void>((resolve) => finish.push(resolve))
      },
      { ...PLAIN, clock, concurrency: 1 },
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

  it('does not run any more when it was waiting for an inline retry', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    let calls = 0
    await consume(
      transport,
      () => {
        calls += 1
        throw unreachable()
      },
      { ...PLAIN, clock, retry: { backoff: { kind: 'fixed', delay: '500ms' } } },
    )
    const held = delivery('a')
    transport.deliver(held)
    await clock.settle()
    transport.receiver?.lost(held)
    await clock.advance('10s')
    expect([calls, transport.decisions.length]).toEqual([1, 0])
  })
})

describe('a flood of alike dead letters', () => {
  it('pauses the consumer instead of emptying the source', async () => {
    const { send, start, clock, backlog, deadLetters } = world()
    const seen = events()
    const consumer = await start(
      () => {
        throw new Error('always the same')
      },
      { retry: { attempts: 1 }, flood: { burst: 5, perMinute: 6 }, concurrency: 1 },
    )
    for (let count = 0; count < 10; count++) send({})
    await clock.settle()
    expect([deadLetters(), backlog()]).toEqual([5, 5])
    expect(consumer.stats().isPaused).toBe(true)
    expect(ofType(seen, 'consumer_paused')[0]?.reason).toBe('flood')
    expect(ofType(seen, 'flood_detected').length).toBe(1)
    await clock.advance('9999ms')
    expect(deadLetters()).toBe(5)
    await clock.advance('11s')
    expect([deadLetters(), backlog()]).toEqual([7, 3])
    await clock.advance('1h')
    expect([deadLetters(), backlog()]).toEqual([10, 0])
  })
})

describe('a policy the transport cannot carry out', () => {
  it('is refused at start, in a sentence that says what to do', async () => {
    const { start } = world({ capabilities: { ordering: 'none', delay: { kind: 'none' } } })
    const refused = await start(() => undefined, { order: 'lane' }).catch((error: unknown) => error)
    expect(isRedriveError(refused, 'CAPABILITY_MISSING')).toBe(true)
    expect(String(refused)).toMatch(
      /^RedriveError: orders cannot run this policy:\n- order: 'lane' needs a transport that keeps order/,
    )
    expect(String(refused)).toContain("Use order: 'none'")
  })

  it('names every class whose backoff needs a delay', () => {
    const capabilities = world({ capabilities: { delay: { kind: 'none' } } }).transport()
      .capabilities
    const problems = missingCapabilities(resolvePolicy(), capabilities)
    expect(problems.length).toBe(2)
    expect(problems[0]).toMatch(
      /^retry.classes.transient: a backoff of up to 1m needs delayed delivery/,
    )
    expect(problems[1]).toMatch(
      /^retry.classes.unknown: .*Keep backoff below retry.inlineBelow \(1s\)/,
    )
  })

  it('runs once it needs no more than there is', () => {
    const capabilities = world({ capabilities: { delay: { kind: 'none' } } }).transport()
      .capabilities
    const short = resolvePolicy({ retry: { backoff: { kind: 'fixed', delay: '500ms' } } })
    expect(missingCapabilities(short, capabilities)).toEqual([])
    expect(missingCapabilities(resolvePolicy({ retry: { attempts: 1 } }), capabilities)).toEqual([])
    const inOrder = resolvePolicy({ order: 'lane' })
    expect(missingCapabilities(inOrder, capabilities)).toEqual([])
  })

  it('leaves the transport alone when it is refused', async () => {
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

  it('cost nothing when nobody listens: a settled delivery is not looked at again', async () => {
    const { clock } = world()
    const transport = new ScriptedTransport()
    let looks = 0
    const watched = Object.defineProperty(delivery('a'), 'source', {
      get: () => {
        looks += 1
        return 'orders'
      },
    })
    await consume(transport, () => undefined, { ...PLAIN, clock })
    transport.deliver(watched)
    await clock.settle()
    expect([transport.decisions.length, looks]).toEqual([1, 0])
  })

  it('say when headers could not be read', async () => {
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
