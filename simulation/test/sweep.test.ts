import { describe, expect, it } from 'vitest'
import { sweep } from '../src/sweep.ts'

describe('a sweep', () => {
  it('plays each seed once, also when a share needs several workers', async () => {
    const progress: number[] = []
    const result = await sweep({
      from: 11,
      seeds: 7,
      workers: 2,
      seedsPerWorker: 2,
      stopAtFirst: false,
      onProgress: (done) => progress.push(done),
    })
    expect(result).toEqual({ done: 7, broken: [] })
    // Shares: 11, 13 | 15, 17 and 12, 14 | 16. Each worker reports at its end.
    expect(progress).toHaveLength(4)
    expect(progress.at(-1)).toBe(7)
  })
})
