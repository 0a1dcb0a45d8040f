import { describe, expect, it } from 'vitest'
import { MissingQueueBackoff } from '../src/missing-queue-backoff.ts'

/** The times of the checks when a missing queue is requested every 100 ms for the given time. */
function looksOf(absent: MissingQueueBackoff, from: number, to: number): readonly number[] {
  const looks: number[] = []
  for (let now = from; now < to; now += 100) {
    if (!absent.isDue(now)) continue
    looks.push(now)
    absent.note(false, now)
  }
  return looks
}

describe('checks for a missing queue', () => {
  it('run immediately, then less and less often, at least once per minute', () => {
    const looks = looksOf(new MissingQueueBackoff(), 5_000, 305_000)
    const waits = looks.slice(1).map((at, index) => at - (looks[index] ?? 0))
    expect(looks[0]).toBe(5_000)
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
  })

  it('run within a second when the queue is expected, and never more often', () => {
    const absent = new MissingQueueBackoff()
    looksOf(absent, 0, 100_000)
    absent.expect()
    expect(looksOf(absent, 100_000, 100_900)).toEqual([100_000])
    absent.expect()
    expect(absent.isDue(100_900)).toBe(false)
    expect(absent.isDue(101_000)).toBe(true)
  })

  it('are always due while the queue exists', () => {
    const absent = new MissingQueueBackoff()
    looksOf(absent, 0, 10_000)
    absent.note(true, 20_000)
    absent.expect()
    expect(absent.isDue(20_000)).toBe(true)
  })
})
