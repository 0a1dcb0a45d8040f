import { describe, expect, it } from 'vitest'
import { Absent } from '../src/absent.ts'

/** When it is looked at, asked every 100 ms for so long; it is never there. */
function looksOf(absent: Absent, from: number, to: number): readonly number[] {
  const looks: number[] = []
  for (let now = from; now < to; now += 100) {
    if (!absent.isDue(now)) continue
    looks.push(now)
    absent.note(false, now)
  }
  return looks
}

describe('looking for a queue that is not there', () => {
  it('is done at once, then ever more rarely, at least once a minute', () => {
    const looks = looksOf(new Absent(), 5_000, 305_000)
    const waits = looks.slice(1).map((at, index) => at - (looks[index] ?? 0))
    expect(looks[0]).toBe(5_000)
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
  })

  it('is done within a second when it is expected, and never more often', () => {
    const absent = new Absent()
    looksOf(absent, 0, 100_000)
    absent.expect()
    expect(looksOf(absent, 100_000, 100_900)).toEqual([100_000])
    absent.expect()
    expect(absent.isDue(100_900)).toBe(false)
    expect(absent.isDue(101_000)).toBe(true)
  })

  it('is always due while it is there', () => {
    const absent = new Absent()
    looksOf(absent, 0, 10_000)
    absent.note(true, 20_000)
    absent.expect()
    expect(absent.isDue(20_000)).toBe(true)
  })
})
