import { afterEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../src/index.ts'

const LONGEST_TIMER_MS = 2 ** 31 - 1

describe('systemClock', () => {
  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
  })

  it('returns whole epoch milliseconds', () => {
    const now = systemClock.now()
    expect(Number.isInteger(now)).toBe(true)
    expect(Math.abs(now - Date.now())).toBeLessThan(5_000)
  })

  it('does not follow a change of the wall clock', () => {
    const before = systemClock.now()
    vi.spyOn(Date, 'now').mockReturnValue(0)
    vi.useFakeTimers({ toFake: ['Date'], now: 0 })
    expect(systemClock.now()).toBeGreaterThanOrEqual(before)
    expect(systemClock.now() - before).toBeLessThan(5_000)
  })

  it('never fires early', async () => {
    const early: number[] = []
    await Promise.all(
      Array.from({ length: 50 }, (_, index) => {
        const delayMs = 5 + index / 7
        const began = performance.now()
        return new Promise<void>((resolve) => {
          systemClock.after(delayMs, () => {
            const waitedMs = performance.now() - began
            if (waitedMs < delayMs) early.push(waitedMs - delayMs)
            resolve()
          })
        })
      }),
    )
    expect(early).toEqual([])
  })

  it('waits longer than one timer can', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const ran = vi.fn<() => void>()
    systemClock.after(3 * LONGEST_TIMER_MS, ran)
    vi.advanceTimersByTime(3 * LONGEST_TIMER_MS)
    expect(ran).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(ran).toHaveBeenCalledOnce()
  })

  it('can be cancelled in any part of a long wait', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const ran = vi.fn<() => void>()
    const cancel = systemClock.after(2 * LONGEST_TIMER_MS, ran)
    vi.advanceTimersByTime(LONGEST_TIMER_MS + 1_000)
    cancel()
    vi.advanceTimersByTime(2 * LONGEST_TIMER_MS)
    expect(ran).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })
})
