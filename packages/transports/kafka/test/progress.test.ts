import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeProgress, Progress } from '../src/consume/progress.ts'

/** A simple and slow reference implementation. */
class Model {
  mark: number
  readonly above = new Set<number>()

  constructor(mark: number) {
    this.mark = mark
  }

  finish(offset: number): void {
    if (offset >= this.mark) this.above.add(offset)
    while (this.above.delete(this.mark)) this.mark += 1
  }

  get top(): number {
    return this.above.size === 0 ? this.mark : Math.max(...this.above) + 1
  }
}

type Step =
  | { readonly kind: 'one'; readonly at: number }
  | { readonly kind: 'all'; readonly from: number; readonly length: number }

/** Offsets count from the first mark; some are below it. */
const steps = (reach: number): fc.Arbitrary<readonly Step[]> => {
  const at = fc.integer({ min: -3, max: reach })
  return fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.record({ kind: fc.constant('one' as const), at }) },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('all' as const),
          from: at,
          length: fc.integer({ min: 0, max: Math.ceil(reach / 4) }),
        }),
      },
    ),
    { maxLength: 400 },
  )
}

const BASES = [0, 31, 1_000, 2 ** 32 - 5, 2 ** 40 + 7]
const bases = fc.constantFrom(...BASES)

function played(base: number, all: readonly Step[]): { progress: Progress; model: Model } {
  const progress = new Progress(base)
  const model = new Model(base)
  for (const step of all) {
    if (step.kind === 'one') {
      progress.finish(base + step.at)
      model.finish(base + step.at)
    } else {
      const from = base + step.from
      progress.finishAll(from, from + step.length)
      for (let offset = from; offset < from + step.length; offset++) model.finish(offset)
    }
  }
  return { progress, model }
}

function expectSame(progress: Progress, model: Model, base: number): void {
  expect(progress.mark).toBe(model.mark)
  expect(progress.span).toBe(model.top - model.mark)
  for (let offset = base - 4; offset < model.top + 40; offset++) {
    const isFinished = offset < model.mark || model.above.has(offset)
    if (progress.has(offset) !== isFinished) throw new Error(`offset ${offset} is wrong`)
  }
}

describe('the progress of a partition', () => {
  it('equals a set of finished records, in any order', () => {
    for (const [reach, numRuns] of [
      [40, 500],
      [300, 200],
      [5_000, 30],
    ] as const) {
      fc.assert(
        fc.property(bases, steps(reach), (base, all) => {
          const { progress, model } = played(base, all)
          expectSame(progress, model, base)
        }),
        { numRuns },
      )
    }
  })

  it('equals a set of finished records after every step', () => {
    fc.assert(
      fc.property(bases, steps(120), (base, all) => {
        for (let count = 0; count <= Math.min(all.length, 40); count++) {
          const { progress, model } = played(base, all.slice(0, count))
          expectSame(progress, model, base)
        }
      }),
      { numRuns: 50 },
    )
  })

  it('is complete when all records of a permutation are finished', () => {
    const permutation = fc.integer({ min: 1, max: 2_500 }).chain((length) => {
      const all = Array.from({ length }, (_, index) => index)
      return fc.shuffledSubarray(all, { minLength: length })
    })
    fc.assert(
      fc.property(bases, permutation, (base, order) => {
        const progress = new Progress(base)
        for (const at of order) progress.finish(base + at)
        expect(progress.mark).toBe(base + order.length)
        expect(progress.span).toBe(0)
        expect(progress.encode()).toEqual({ text: '', upTo: progress.mark })
      }),
      { numRuns: 100 },
    )
  })

  it('works with 300,000 finished records above an unfinished one, and with a moving mark', () => {
    const count = 300_000
    for (const base of BASES) {
      const progress = new Progress(base)
      for (let at = count - 1; at > 0; at--) if (at % 7 !== 0) progress.finish(base + at)
      expect(progress.mark).toBe(base)
      expect([1, 6, 7, 8, 69_999, 70_000].map((at) => progress.has(base + at))).toEqual([
        true,
        true,
        false,
        true,
        true,
        false,
      ])
      for (let at = 0; at < count; at += 7) {
        progress.finish(base + at)
        if (progress.mark !== base + Math.min(at + 7, count)) throw new Error(`stuck at ${at}`)
      }
      expect(progress.mark).toBe(base + count)
    }
  })

  it('keeps all records when a window moves far ahead', () => {
    const base = 2 ** 33
    const progress = new Progress(base)
    // Even offsets 1,500 ahead, which exceeds the initial bitmap; odd offsets at the mark.
    for (let at = -1_500; at < 60_000; at++) {
      if (at % 2 === 0) progress.finish(base + at + 1_500)
      else if (at > 0) progress.finish(base + at)
      if (at > 0 && progress.mark !== base + at + 1 + (at % 2)) throw new Error(`mark at ${at}`)
    }
    expect(progress.mark).toBe(base + 60_001)
    expect(progress.span).toBe(1_498)
  })

  it('increases its version with every change', () => {
    const progress = new Progress(5)
    const before = progress.version
    progress.finish(7)
    expect(progress.version).toBeGreaterThan(before)
    const between = progress.version
    progress.finishAll(5, 9)
    expect(progress.version).toBeGreaterThan(between)
  })

  it('is not affected by changes of its copy', () => {
    fc.assert(
      fc.property(bases, steps(300), steps(300), (base, first, second) => {
        const { progress, model } = played(base, first)
        const copy = progress.copy()
        expectSame(copy, model, base)
        for (const step of second) {
          if (step.kind === 'one') copy.finish(base + step.at)
          else copy.finishAll(base + step.from, base + step.from + step.length)
        }
        expectSame(progress, model, base)
        const both = played(base, [...first, ...second])
        expectSame(copy, both.model, base)
      }),
      { numRuns: 100 },
    )
  })
})

describe('encoded progress', () => {
  it('decodes to the same progress', () => {
    fc.assert(
      fc.property(bases, steps(800), (base, all) => {
        const { progress, model } = played(base, all)
        const { text, upTo } = progress.encode()
        expect(upTo).toBe(model.top)
        expectSame(new Progress(model.mark, decodeProgress(model.mark, text)), model, base)
      }),
      { numRuns: 300 },
    )
  })

  it('decodes runs of any length', () => {
    for (const base of BASES) {
      const progress = new Progress(base)
      progress.finish(base + 3_000_000)
      progress.finishAll(base + 3_100_000, base + 5_500_000)
      expect(decodeProgress(base, progress.encode().text)).toEqual([
        [base + 3_000_000, base + 3_000_001],
        [base + 3_100_000, base + 5_500_000],
      ])
    }
  })

  it('is cut when it is too long, and returns the first missing offset', () => {
    const gaps = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 3_000, maxLength: 4_000 })
    fc.assert(
      fc.property(bases, gaps, (base, all) => {
        const progress = new Progress(base)
        let at = base
        for (const gap of all) {
          at += gap + 1
          progress.finish(at)
        }
        const { text, upTo } = progress.encode()
        expect(text.length).toBeLessThanOrEqual(4_096)
        expect(upTo).toBeLessThan(at)
        const read = new Progress(base, decodeProgress(base, text))
        expect(read.mark).toBe(base)
        expect(read.span).toBe(upTo - base)
        for (let offset = base; offset < upTo; offset++) {
          if (read.has(offset) !== progress.has(offset))
            throw new Error(`offset ${offset} is wrong`)
        }
      }),
      { numRuns: 10 },
    )
  })

  it('of another client decodes to nothing, and never throws', () => {
    for (const text of [
      null,
      undefined,
      '',
      'hello',
      '{"a":1}',
      '1',
      '2.AAAA',
      '1.',
      '1.====',
      '1.\u0000é',
    ]) {
      expect(decodeProgress(10, text)).toEqual([])
    }
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), fc.boolean(), (text, isMarked) => {
        const ranges = decodeProgress(100, isMarked ? `1.${text}` : text)
        let last = 100
        for (const [from, to] of ranges) {
          expect(from).toBeGreaterThanOrEqual(last)
          expect(to).toBeGreaterThanOrEqual(from)
          last = to
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it('of another client does not block the reader or fill its memory', () => {
    // 2^62 finished records, far ahead, in ten bytes that any client can commit.
    const huge = `1.${Buffer.from([1, 255, 255, 255, 255, 255, 255, 255, 255, 63]).toString('base64url')}`
    const progress = new Progress(10, decodeProgress(10, huge))
    expect(progress.mark).toBe(10)
    expect(progress.span).toBeLessThan(2 ** 26)
  })
})
