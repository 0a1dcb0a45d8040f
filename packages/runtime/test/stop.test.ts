import { isRedriveError } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import {
  delivery,
  events,
  never,
  revoked,
  ofType,
  unreachable,
  world,
  scripted,
} from './fixtures.ts'

describe('stop', () => {
  it('lets running handlers finish, accepts nothing new, and closes', async () => {
    const { send, start, clock, backlog } = world()
    const finish: (() => void)[] = []
    const consumer = await start(() => new Promise<void>((resolve) => finish.push(resolve)), {
      concurrency: 2,
    })
    for (let count = 0; count < 5; count++) send({})
    await clock.settle()
    const stopped = consumer.stop({ drain: '10s' })
    await clock.settle()
    for (const resolve of finish) resolve()
    await stopped
    expect(finish.length).toBe(2)
    expect(backlog()).toBe(3)
    await clock.advance('1h')
    expect(finish.length).toBe(2)
  })

  it('aborts handlers that are not done in time and returns their messages as if they had not run', async () => {
    const { send, start, clock, broker } = world()
    const signals: AbortSignal[] = []
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    const consumer = await start((_, { signal }) => {
      signals.push(signal)
      return ended
    })
    send({}, { id: 'a' })
    await clock.settle()
    const stopped = consumer.stop({ drain: '10s' })
    await clock.advance('7999ms')
    expect(signals[0]?.aborted).toBe(false)
    await clock.advance('2s')
    await stopped
    expect(isRedriveError(signals[0]?.reason, 'STOPPING')).toBe(true)
    expect(broker.contents('orders')).toMatchObject([{ id: 'a', headers: {} }])
    end()
    await clock.settle()
    const attempts: number[] = []
    await start((_, { attempt }) => void attempts.push(attempt))
    await clock.settle()
    expect(attempts).toEqual([1])
  })

  it('returns a message that waits for an earlier run of it, without a failure', async () => {
    const { send, start, clock, broker, deadLetters } = world()
    const consumer = await start(never, { retry: { attempts: 1, unproven: 'off' } })
    send({}, { id: 'a' })
    await clock.settle()
    broker.restart()
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ running: 1, waiting: 1 })
    const stopped = consumer.stop({ drain: '1s' })
    await clock.advance('1s')
    await stopped
    expect(deadLetters()).toBe(0)
    expect(broker.contents('orders')).toMatchObject([{ id: 'a', headers: {} }])
  })

  it('decides a message whose handler throws a value that throws on each access', async () => {
    const { send, start, clock, backlog } = world()
    let fail: (error: unknown) => void = () => undefined
    const consumer = await start(
      () =>
        new Promise((_, reject) => {
          fail = reject
        }),
      { retry: { attempts: 2, backoff: { kind: 'fixed', delay: '1m' } } },
    )
    send({})
    await clock.settle()
    const stopped = consumer.stop({ drain: '10s' })
    fail(revoked())
    await clock.advance('10s')
    await stopped
    expect(consumer.stats()).toMatchObject({ failed: 1, running: 0, settling: 0 })
    expect(backlog()).toBe(1)
  })

  it("returns deliveries without increasing the broker's delivery count", async () => {
    const { send, start, clock, transport } = world()
    const consumer = await start(() => never(), { concurrency: 3 })
    for (let count = 0; count < 3; count++) send({})
    await clock.settle()
    const stopped = consumer.stop({ drain: 100 })
    await clock.advance(200)
    await stopped
    const counts: number[] = []
    const next = transport()
    await next.open()
    next.limit(10)
    next.receive({
      deliver: ({ deliveryCount }) => void counts.push(deliveryCount),
      lost: () => {},
    })
    expect(counts).toEqual([1, 1, 1])
  })

  it('counts an attempt that fails during the drain', async () => {
    const { send, start, clock, backlog } = world()
    const fail: (() => void)[] = []
    const consumer = await start(
      () => new Promise((_, reject) => fail.push(() => reject(unreachable()))),
      { retry: { backoff: { kind: 'fixed', delay: '500ms' } } },
    )
    send({})
    await clock.settle()
    const stopped = consumer.stop({ drain: '10s' })
    fail[0]?.()
    await clock.advance('20s')
    await stopped
    expect(backlog()).toBe(1)
    const attempts: number[] = []
    await start((_, { attempt }) => void attempts.push(attempt))
    await clock.advance('1s')
    expect(attempts).toEqual([2])
  })

  it('leaves no timer on the clock', async () => {
    const { send, start, clock } = world()
    const consumer = await start(
      (_, { attempt }) => {
        if (attempt === 1) throw unreachable()
        return never()
      },
      { timeout: '10m', retry: { backoff: { kind: 'fixed', delay: '500ms' } } },
    )
    send({})
    await clock.advance('600ms')
    const stopped = consumer.stop({ drain: 100 })
    await clock.advance(100)
    await stopped
    expect(clock.pending).toBe(0)
  })

  it('cancels the next check of its dependency', async () => {
    const { send, start, clock } = world()
    const breaker = { trip: { kind: 'consecutive', failures: 1 }, minOpen: '10s' } as const
    const consumer = await start(() => Promise.reject(unreachable()), { breaker })
    send({})
    await clock.settle()
    expect(consumer.stats().breaker).toBe('open')
    await consumer.stop()
    expect(clock.pending).toBe(0)
  })

  it('is done immediately when nothing runs', async () => {
    const { start } = world()
    const consumer = await start(() => undefined)
    await consumer.stop()
    await consumer.stop({ drain: '1s' })
    expect(consumer.stats()).toMatchObject({ isPaused: true, running: 0 })
  })

  it('is called by `await using`', async () => {
    const { send, start, clock, backlog } = world()
    {
      await using consumer = await start(() => undefined)
      expect(consumer.source).toBe('orders')
    }
    send({})
    await clock.settle()
    expect(backlog()).toBe(1)
  })

  it('rejects a drain that is not a duration, and the consumer continues', async () => {
    const { start, send, clock } = world()
    const consumer = await start(() => undefined)
    const drain = 'soon' as '1s'
    await expect(consumer.stop({ drain })).rejects.toMatchObject({
      code: 'POLICY_INVALID',
      message:
        "The options of stop() are invalid:\n- drain: expected a duration from 0ms to 366d such as '250ms', '5s' or '2m', got 'soon'",
    })
    await expect(consumer.stop({ drian: '1s' } as never)).rejects.toMatchObject({
      problems: ['drian: unknown option; known options: drain'],
    })
    send({})
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ handled: 1, isPaused: false })
  })

  it.each(['SIGTERM', 0, true, new Error('socket closed')])(
    'stops when it is the listener of an event, which passes %s',
    async (passed) => {
      const { start } = world()
      const consumer = await start(() => undefined)
      await (consumer.stop as (passed: unknown) => Promise<void>)(passed)
      expect(consumer.stats().isPaused).toBe(true)
    },
  )

  it('waits for a hand-off to be confirmed, and no longer than the drain', async () => {
    const { clock, transport, start } = scripted()
    let confirm = () => {}
    transport.result = () =>
      new Promise((resolve) => {
        confirm = () => resolve({ kind: 'done', destination: 'dead_letter', truncated: 0 })
      })
    const consumer = await start(() => Promise.reject(new Error('no')), {
      retry: { attempts: 1 },
    })
    transport.deliver(delivery('a'))
    await clock.settle()
    let isStopped = false
    const stopped = consumer.stop({ drain: '10s' }).then(() => {
      isStopped = true
    })
    await clock.advance('5s')
    expect(isStopped).toBe(false)
    confirm()
    await stopped
    expect(transport.log.slice(-2)).toEqual(['pause', 'close'])
  })

  it('does not call a transport that is closed', async () => {
    const { clock, transport, start } = scripted()
    const seen = events()
    transport.result = () => ({ kind: 'unknown', error: new Error('no response') })
    const consumer = await start(() => undefined)
    transport.deliver(delivery('a'))
    await clock.advance('7s')
    const [first, second] = [consumer.stop({ drain: '1s' }), consumer.stop({ drain: '1s' })]
    await clock.advance('2s')
    await Promise.all([first, second])
    expect(clock.pending).toBe(0)
    await clock.advance('1h')
    expect(transport.log.filter((line) => line === 'close').length).toBe(1)
    expect(transport.log.at(-1)).toBe('close')
    expect(ofType(seen, 'user_code_failed')).toEqual([])
  })

  it('ends in time although the broker never responds', async () => {
    const { clock, transport, start } = scripted()
    transport.result = () => never()
    const consumer = await start(() => undefined)
    transport.deliver(delivery('a'))
    await clock.settle()
    const stopped = consumer.stop({ drain: '10s' })
    await clock.advance('11s')
    await stopped
    expect(transport.log.at(-1)).toBe('close')
  })
})

describe('pause and resume', () => {
  it('stop and start the intake while running handlers continue', async () => {
    const { send, start, clock, backlog } = world()
    const seen = events()
    const finish: (() => void)[] = []
    const consumer = await start(() => new Promise<void>((resolve) => finish.push(resolve)))
    send({})
    await clock.settle()
    consumer.pause()
    consumer.pause()
    send({})
    await clock.settle()
    expect(finish.length).toBe(1)
    finish[0]?.()
    await clock.settle()
    expect([backlog(), finish.length]).toEqual([1, 1])
    consumer.resume()
    await clock.settle()
    finish[1]?.()
    await clock.settle()
    expect(backlog()).toBe(0)
    expect(ofType(seen, 'consumer_paused').map(({ reason }) => reason)).toEqual(['requested'])
    expect(ofType(seen, 'consumer_resumed').length).toBe(1)
  })
})
