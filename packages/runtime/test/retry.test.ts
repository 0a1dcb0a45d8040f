import { describe, expect, it } from 'vitest'
import { type Clock, consume, type Handler } from '../src/index.ts'
import {
  PLAIN,
  QUEUE,
  ScriptedTransport,
  delivery,
  events,
  ofType,
  scripted,
  unreachable,
  untilAborted,
  world,
} from './fixtures.ts'

const fixed = (delay: `${number}ms` | `${number}s` | `${number}h`) =>
  ({ kind: 'fixed', delay }) as const

/** A handler that fails on the first attempt. `calls` has the times of its calls, in ms from now on. */
function failingOnce(clock: Clock) {
  const calls: number[] = []
  const began = clock.now()
  const handler: Handler = (_, { attempt }) => {
    calls.push(clock.now() - began)
    if (attempt === 1) throw unreachable()
  }
  return { calls, handler }
}

describe('a retry', () => {
  it('waits in the process below the limit, and keeps the delivery in flight', async () => {
    const { send, start, clock, broker } = world()
    const seen = events()
    const { calls, handler } = failingOnce(clock)
    await start(handler, { retry: { backoff: fixed('999ms') } })
    send({})
    await clock.advance('998ms')
    expect(calls).toEqual([0])
    expect(broker.contents(QUEUE).map(({ headers }) => headers)).toEqual([{}])
    await clock.advance('1ms')
    expect(calls).toEqual([0, 999])
    expect(ofType(seen, 'enacted').map(({ decision }) => decision.kind)).toEqual(['settle'])
  })

  it('waits on the broker from the limit on, with its history', async () => {
    const { send, start, clock, broker } = world()
    const seen = events()
    const { calls, handler } = failingOnce(clock)
    await start(handler, { retry: { backoff: fixed('1s') } })
    send({})
    await clock.settle()
    const [waiting] = broker.contents(QUEUE)
    expect(waiting?.headers).toMatchObject({ 'redrive-attempt': '1', 'redrive-class': 'transient' })
    await clock.advance('999ms')
    expect(calls).toEqual([0])
    await clock.advance('1ms')
    expect(calls).toEqual([0, 1_000])
    expect(ofType(seen, 'enacted').map(({ decision }) => decision.kind)).toEqual([
      'retryAt',
      'settle',
    ])
  })

  it('is given up after the allowed attempts, with all of them in its history', async () => {
    const { send, start, clock, drain, backlog } = world()
    let calls = 0
    await start(
      () => {
        calls += 1
        throw unreachable()
      },
      { retry: { attempts: 4, backoff: fixed('100ms') } },
    )
    send({})
    await clock.advance('10s')
    const [deadLetter] = await drain()
    expect(calls).toBe(4)
    expect(deadLetter?.reason).toBe('attempts_exhausted')
    expect(deadLetter?.delivery.cycle.history.map(({ number }) => number)).toEqual([1, 2, 3, 4])
    expect(backlog()).toBe(0)
  })

  it('counts attempts across the process and the broker', async () => {
    const { send, start, clock, drain } = world()
    const attempts: number[] = []
    await start(
      (_, { attempt }) => {
        attempts.push(attempt)
        throw unreachable()
      },
      {
        retry: {
          attempts: 4,
          backoff: {
            kind: 'progressive',
            tiers: {},
            otherwise: ['10ms', '2s', '10ms'],
            jitter: 'none',
          },
        },
      },
    )
    send({})
    await clock.advance('10s')
    expect(attempts).toEqual([1, 2, 3, 4])
    expect((await drain())[0]?.delivery.cycle.attempts).toBe(4)
  })

  it('is handed to the broker with its attempt when the consumer stops during the wait', async () => {
    const { send, start, clock, backlog } = world()
    const consumer = await start(
      () => {
        throw unreachable()
      },
      { retry: { backoff: fixed('500ms') } },
    )
    send({})
    await clock.advance('100ms')
    await consumer.stop()
    expect(backlog()).toBe(1)
    const attempts: number[] = []
    const stoppedAt = clock.now()
    let ranAt = 0
    await start((_, { attempt }) => {
      attempts.push(attempt)
      ranAt = clock.now()
    })
    await clock.advance('2s')
    expect(attempts).toEqual([2])
    expect(ranAt - stoppedAt).toBeGreaterThanOrEqual(400)
  })

  it('never runs early on a transport without delays, for any requested wait', async () => {
    const clock = world().clock
    const transport = new ScriptedTransport({ delay: { kind: 'none' } })
    let calls = 0
    await consume(
      transport,
      () => {
        calls += 1
        throw Object.assign(new Error('busy'), { status: 503, headers: { 'retry-after': '60' } })
      },
      { ...PLAIN, clock, retry: { backoff: fixed('100ms') } },
    )
    transport.deliver(delivery('a'))
    await clock.advance('59s')
    const handedOff = transport.decisions.filter(
      ({ decision }) => decision.kind === 'retryAt' && decision.delayMs > 0,
    )
    expect(handedOff).toEqual([])
    expect(calls).toBe(1)
  })

  it('beyond the longest delay of the broker is split, and each part is on time', async () => {
    const { send, start, clock } = world({
      capabilities: { delay: { kind: 'native', longestMs: 60_000 } },
    })
    const seen = events()
    const calls: number[] = []
    const began = clock.now()
    await start(
      (_, { attempt }) => {
        calls.push(clock.now() - began)
        if (attempt === 1) throw unreachable()
      },
      { retry: { backoff: fixed('150s') } },
    )
    send({})
    await clock.advance('149999ms')
    expect(calls).toEqual([0])
    await clock.advance('1ms')
    expect(calls).toEqual([0, 150_000])
    const legs = ofType(seen, 'enacted').flatMap(({ decision }) =>
      decision.kind === 'retryAt' ? [[decision.reason, decision.delayMs]] : [],
    )
    expect(legs).toEqual([
      ['backoff', 60_000],
      ['not_due', 60_000],
      ['not_due', 30_000],
    ])
  })
})

describe('attempts in flight', () => {
  it('never exceed the concurrency', async () => {
    const { send, start, clock } = world()
    let running = 0
    let most = 0
    const finish: (() => void)[] = []
    await start(
      async () => {
        running += 1
        most = Math.max(most, running)
        await new Promise<void>((resolve) => finish.push(resolve))
        running -= 1
      },
      { concurrency: 3 },
    )
    for (let count = 0; count < 10; count++) send({})
    for (let round = 0; round < 10; round++) {
      await clock.settle()
      finish.shift()?.()
    }
    await clock.settle()
    expect([most, running]).toEqual([3, 0])
  })

  it('get their full timeout, also when one replaces an attempt that timed out', async () => {
    const { clock, transport, start } = scripted()
    const began: number[] = []
    const aborted: number[] = []
    await start(
      (_, { signal }) => {
        const index = began.push(clock.now()) - 1
        signal.addEventListener('abort', () => {
          aborted[index] = clock.now()
        })
        return untilAborted(signal)
      },
      {
        concurrency: 1,
        timeout: '800ms',
        retry: { backoff: fixed('1h') },
      },
    )
    transport.deliver(delivery('a'), delivery('b'), delivery('c'))
    await clock.advance('5s')
    const lasted = aborted.map((at, index) => at - (began[index] ?? 0))
    expect(lasted.length).toBe(3)
    for (const ms of lasted) expect(ms).toBeGreaterThanOrEqual(800)
  })
})
