import { describe, expect, it } from 'vitest'
import type { Inbox } from '../src/index.ts'
import { events, never, ofType, world } from './fixtures.ts'

/** An inbox with a timeout of 5 s that does not wait for its work, as one whose connection is lost. */
const impatient = (after: (ms: number, callback: () => void) => void): Inbox => ({
  handle: (_, work) =>
    Promise.race([
      work(undefined).then(() => 'handled' as const),
      new Promise<never>((__, reject) => {
        after(5_000, () => reject(new Error('Connection terminated unexpectedly')))
      }),
    ]),
})

describe('an inbox that fails before its work has ended', () => {
  it('does not start a second run of the message', async () => {
    const { send, start, clock } = world()
    let alive = 0
    let mostAlive = 0
    const consumer = await start<unknown, unknown>(
      async () => {
        alive += 1
        mostAlive = Math.max(mostAlive, alive)
        await new Promise<void>((resolve) => void clock.after(20_000, resolve))
        alive -= 1
      },
      { inbox: impatient((ms, callback) => void clock.after(ms, callback)), timeout: '30s' },
    )
    send({})
    await clock.advance('10s')
    expect(consumer.stats()).toMatchObject({ running: 1, failed: 0 })
    await clock.advance('15s')
    expect(consumer.stats().failed).toBe(1)
    await clock.advance('5m')
    expect(mostAlive).toBe(1)
  })

  it('keeps the timeout: the signal fires, and a handler that does not end is hung', async () => {
    const { send, start, clock } = world()
    const seen = events()
    let runs = 0
    let signal: AbortSignal | undefined
    const consumer = await start<unknown, unknown>(
      (_, context) => {
        runs += 1
        signal = context.signal
        return never()
      },
      {
        inbox: impatient((ms, callback) => void clock.after(ms, callback)),
        timeout: '30s',
        grace: '5s',
      },
    )
    send({})
    await clock.advance('29s')
    expect(signal?.aborted).toBe(false)
    await clock.advance('11s')
    expect(signal?.aborted).toBe(true)
    expect(consumer.stats()).toMatchObject({ hung: 1, failed: 1 })
    expect(ofType(seen, 'handler_hung')).toHaveLength(1)
    await clock.advance('5m')
    expect(runs).toBe(1)
  })

  it('cannot start the handler after its result', async () => {
    const { send, start, clock } = world()
    let runs = 0
    const late: unknown[] = []
    const inbox: Inbox = {
      handle: (_, work) => {
        clock.after(10_000, () => {
          work(undefined).catch((error: unknown) => late.push(error))
        })
        return Promise.reject(new Error('No connection is free'))
      },
    }
    const consumer = await start<unknown, unknown>(() => void (runs += 1), {
      inbox,
      retry: { backoff: { kind: 'fixed', delay: '1m' } },
    })
    send({})
    await clock.advance('20s')
    expect(consumer.stats().failed).toBe(1)
    expect(runs).toBe(0)
    expect(late).toMatchObject([{ message: expect.stringContaining('after its result') as string }])
  })
})

describe('an inbox that reports a message as handled', () => {
  const RETRY = { retry: { backoff: { kind: 'fixed', delay: '1s' } } } as const

  it.each<[string, Inbox]>([
    [
      'before its work fails',
      {
        handle: (_, work) => {
          work(undefined).catch(() => undefined)
          return Promise.resolve('handled')
        },
      },
    ],
    [
      'after its work failed',
      {
        handle: async (_, work) => {
          await work(undefined).catch(() => undefined)
          return 'handled'
        },
      },
    ],
  ])('does not settle it %s: the handler runs again', async (_, inbox) => {
    const { send, start, clock, backlog } = world()
    let runs = 0
    const consumer = await start<unknown, unknown>(
      async () => {
        runs += 1
        await Promise.resolve()
        if (runs === 1) throw new Error('insert failed')
      },
      { ...RETRY, inbox },
    )
    send({})
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ handled: 0, failed: 1 })
    await clock.advance('1m')
    expect(runs).toBe(2)
    expect(consumer.stats().handled).toBe(1)
    expect(backlog()).toBe(0)
  })

  it('does not settle it when it never called its work', async () => {
    const { send, start, drain, clock } = world()
    let runs = 0
    await start<unknown, unknown>(() => void (runs += 1), {
      inbox: { handle: () => Promise.resolve('handled') },
      retry: { attempts: 1 },
    })
    send({})
    await clock.settle()
    expect(runs).toBe(0)
    const [dead] = await drain()
    expect(dead?.delivery.cycle.history.at(-1)?.message).toContain('never called the work')
  })

  it('settles it when the second call of its work succeeded', async () => {
    const { send, start, clock } = world()
    let runs = 0
    const inbox: Inbox = {
      handle: async (_, work) => {
        await work(undefined).catch(() => work(undefined))
        return 'handled'
      },
    }
    const consumer = await start<unknown, unknown>(
      () => {
        runs += 1
        if (runs === 1) throw new Error('could not serialize access')
      },
      { inbox },
    )
    send({})
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ handled: 1, failed: 0 })
  })
})

describe('an inbox that reports a result before its work has ended', () => {
  it('does not settle the message before', async () => {
    const { send, start, clock, backlog } = world()
    let end: () => void = () => undefined
    const inbox: Inbox = {
      handle: (_, work) => {
        void work(undefined)
        return Promise.resolve('handled')
      },
    }
    await start<unknown, unknown>(
      () =>
        new Promise<void>((resolve) => {
          end = resolve
        }),
      { inbox },
    )
    send({})
    await clock.settle()
    expect(backlog()).toBe(1)
    end()
    await clock.settle()
    expect(backlog()).toBe(0)
  })
})
