import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AtRisk, Deaths, decodeCommit } from '../src/deaths.ts'
import { Progress } from '../src/progress.ts'

const MARK = 1_000

/** What the next owner reads of what the last one committed. */
function passedOn(deaths: Deaths, progress: Progress, atRisk: AtRisk) {
  const text = `${progress.encode().text}${deaths.encode(progress, atRisk)}`
  return { text, ...decodeCommit(progress.mark, text) }
}

describe('how often a record was in hand when a process died', () => {
  it('is never, when the partition was let go of', () => {
    const { text, deaths } = passedOn(new Deaths(), new Progress(MARK), 'nobody')
    expect(text).toBe('')
    expect(deaths.of(MARK)).toBe(0)
  })

  it('is once for each of the first unfinished ones, when one died at work', () => {
    const progress = new Progress(MARK, [[MARK + 1, MARK + 3]])
    const { deaths } = passedOn(new Deaths(), progress, { amongFirst: 2 })
    // MARK and MARK + 3 are the first two; what is finished between them does not matter.
    expect([MARK, MARK + 3, MARK + 4].map((offset) => deaths.of(offset))).toEqual([1, 1, 0])
  })

  it('grows with every death at work', () => {
    const progress = new Progress(MARK)
    const once = passedOn(new Deaths(), progress, { amongFirst: 5 }).deaths
    const twice = passedOn(once, progress, { amongFirst: 2 }).deaths
    expect([MARK, MARK + 1, MARK + 2, MARK + 5].map((offset) => twice.of(offset))).toEqual([
      2, 2, 1, 0,
    ])
  })

  it('grows only for the one that ran alone, and its neighbours keep what they had', () => {
    const progress = new Progress(MARK)
    const once = passedOn(new Deaths(), progress, { amongFirst: 3 }).deaths
    const { deaths } = passedOn(once, progress, { exactly: [MARK + 1] })
    expect([MARK, MARK + 1, MARK + 2].map((offset) => deaths.of(offset))).toEqual([1, 2, 1])
  })

  it('is remembered while others are finished, and by those who come after', () => {
    const progress = new Progress(MARK)
    const once = passedOn(new Deaths(), progress, { amongFirst: 3 }).deaths
    progress.finish(MARK)
    const later = passedOn(once, progress, 'nobody').deaths
    expect([MARK + 1, MARK + 2, MARK + 3].map((offset) => later.of(offset))).toEqual([1, 1, 0])
  })

  it('fits into a commit with the longest progress, whatever has happened', () => {
    const progress = new Progress(MARK)
    for (let at = MARK + 1; at < MARK + 9_000; at += 2) progress.finish(at)
    let deaths = new Deaths()
    for (let times = 0; times < 60; times++) {
      deaths = passedOn(deaths, progress, { amongFirst: 4_000 }).deaths
      const exactly = Array.from({ length: 30 }, (_, index) => MARK + 100 * (times + index) * 2)
      const { text, deaths: next } = passedOn(deaths, progress, { exactly })
      expect(text.length).toBeLessThanOrEqual(4_096)
      deaths = next
    }
  })

  it('is never believed of nonsense, and reading it never throws', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const { deaths, progress } = decodeCommit(MARK, text)
        expect(progress.mark).toBeGreaterThanOrEqual(MARK)
        expect(deaths.of(MARK + 20_000_000)).toBe(0)
      }),
    )
    const { deaths } = decodeCommit(MARK, ';;;~999999999')
    expect(deaths.of(MARK + 20_000)).toBe(0)
  })
})
