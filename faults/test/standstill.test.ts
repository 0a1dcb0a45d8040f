import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Span, stoodMs, watchStandstills } from '../src/evidence/stalls.ts'

afterEach(() => vi.restoreAllMocks())

/** Returns the first report for a server with these response times. */
async function firstReport(...beats: readonly (() => number)[]): Promise<number> {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const waiting = beats.values()
  const report = Promise.withResolvers<Span>()
  const end = watchStandstills(report.resolve, async () => {
    now += waiting.next().value?.() ?? 0
  })
  const { from, to } = await report.promise
  end()
  return to - from
}

describe('a stall', () => {
  it('is reported when a check is more than 200 ms late', async () => {
    expect(
      await firstReport(
        () => 300,
        () => 301,
      ),
    ).toBe(301)
  })

  it('is not reported for a server that rejects requests', async () => {
    const refuses = () => {
      throw new Error('down')
    }
    expect(await firstReport(refuses, () => 1_000)).toBe(1_000)
  })
})

const standstills = [
  { from: 100, to: 300 },
  { from: 500, to: 1_000 },
]

describe('the stalled part of a time range', () => {
  it('is the sum of all stalls in it', () => {
    expect(stoodMs({ from: 0, to: 2_000 }, standstills)).toBe(700)
  })

  it('contains only the part of a stall that is in it', () => {
    expect(stoodMs({ from: 200, to: 600 }, standstills)).toBe(200)
  })

  it('is 0 when all stalls are before or after it', () => {
    expect(stoodMs({ from: 300, to: 500 }, standstills)).toBe(0)
    expect(stoodMs({ from: 0, to: 2_000 }, [])).toBe(0)
  })
})
