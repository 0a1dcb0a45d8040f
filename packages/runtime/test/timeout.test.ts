import { withTimeout } from '@redrive/runtime/internal'
import { FakeClock } from '@redrive/testing'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'

const never = () => new Promise<never>(() => undefined)

afterEach(() => {
  vi.useRealTimers()
})

describe('withTimeout', () => {
  it('returns the result of the work and clears its timer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const onTimeout = vi.fn<() => void>()
    expect(await withTimeout(Promise.resolve('done'), 1_000, onTimeout)).toBe('done')
    expect(vi.getTimerCount()).toBe(0)
    expect(onTimeout).not.toHaveBeenCalled()
  })

  it('rejects with the error of the work and clears its timer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const error = new Error('refused')
    const work = withTimeout(Promise.reject(error), 1_000, () => undefined)
    await expect(work).rejects.toBe(error)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('returns the result of onTimeout at the timeout, not before', async () => {
    const clock = new FakeClock()
    const ended: string[] = []
    void withTimeout(never(), 1_000, () => 'late', clock).then((how) => ended.push(how))
    await clock.advance(999)
    expect(ended).toEqual([])
    await clock.advance(1)
    expect(ended).toEqual(['late'])
    expect(clock.pending).toBe(0)
  })

  it('rejects with what onTimeout throws', async () => {
    const clock = new FakeClock()
    const onTimeout = () => {
      throw new Error('No answer within 1 s.')
    }
    const failing = withTimeout(never(), 1_000, onTimeout, clock).catch((error: unknown) => error)
    await clock.advance(1_000)
    expect(await failing).toEqual(new Error('No answer within 1 s.'))
  })

  it('ignores an error of the work after the timeout', async () => {
    const unhandled: unknown[] = []
    const onUnhandled = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', onUnhandled)
    onTestFinished(() => void process.off('unhandledRejection', onUnhandled))
    const clock = new FakeClock()
    const { promise, reject } = Promise.withResolvers<string>()
    const work = withTimeout(promise, 1_000, () => 'late', clock)
    await clock.advance(1_000)
    reject(new Error('too late'))
    expect(await work).toBe('late')
    await clock.settle()
    expect(unhandled).toEqual([])
  })

  it('accepts a value that is no promise', async () => {
    expect(await withTimeout(1, 1_000, () => undefined)).toBe(1)
  })
})
