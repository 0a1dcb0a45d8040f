import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AtRisk, CrashEvidence, decodeCommit } from '../src/consume/crash-evidence.ts'
import { Progress } from '../src/consume/progress.ts'

const MARK = 1_000

/** Returns what the next owner reads from the last commit. */
function passedOn(deaths: CrashEvidence, progress: Progress, atRisk: AtRisk) {
  const text = `${progress.encode().text}${deaths.encode(progress, atRisk)}`
  return { text, ...decodeCommit(progress.mark, text) }
}

describe('the crash count of a record', () => {
  it('is 0 when the partition was released', () => {
    const { text, deaths } = passedOn(new CrashEvidence(), new Progress(MARK), 'none')
    expect(text).toBe(';;;')
    expect(deaths.of(MARK)).toBe(0)
  })

  it('is 1 for each of the first unfinished records after a crash', () => {
    const progress = new Progress(MARK, [[MARK + 1, MARK + 3]])
    const { deaths } = passedOn(new CrashEvidence(), progress, { amongFirst: 2 })
    // MARK and MARK + 3 are the first two unfinished records; finished ones between them do not count.
    expect([MARK, MARK + 3, MARK + 4].map((offset) => deaths.of(offset))).toEqual([1, 1, 0])
  })

  it('increases with every crash', () => {
    const progress = new Progress(MARK)
    const once = passedOn(new CrashEvidence(), progress, { amongFirst: 5 }).deaths
    const twice = passedOn(once, progress, { amongFirst: 2 }).deaths
    expect([MARK, MARK + 1, MARK + 2, MARK + 5].map((offset) => twice.of(offset))).toEqual([
      2, 2, 1, 0,
    ])
  })

  it('increases only for the record that ran alone, and others keep theirs', () => {
    const progress = new Progress(MARK)
    const once = passedOn(new CrashEvidence(), progress, { amongFirst: 3 }).deaths
    const { deaths } = passedOn(once, progress, { exactly: [MARK + 1] })
    expect([MARK, MARK + 1, MARK + 2].map((offset) => deaths.of(offset))).toEqual([1, 2, 1])
  })

  it('is kept while other records are finished, and by later owners', () => {
    const progress = new Progress(MARK)
    const once = passedOn(new CrashEvidence(), progress, { amongFirst: 3 }).deaths
    progress.finish(MARK)
    const later = passedOn(once, progress, 'none').deaths
    expect([MARK + 1, MARK + 2, MARK + 3].map((offset) => later.of(offset))).toEqual([1, 1, 0])
  })

  it('always fits into a commit with the longest progress', () => {
    const progress = new Progress(MARK)
    for (let at = MARK + 1; at < MARK + 9_000; at += 2) progress.finish(at)
    let deaths = new CrashEvidence()
    for (let times = 0; times < 60; times++) {
      deaths = passedOn(deaths, progress, { amongFirst: 4_000 }).deaths
      const exactly = Array.from({ length: 30 }, (_, index) => MARK + 100 * (times + index) * 2)
      const { text, deaths: next } = passedOn(deaths, progress, { exactly })
      expect(text.length).toBeLessThanOrEqual(4_096)
      deaths = next
    }
  })

  it('is ignored when it is invalid, and decoding never throws', () => {
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
