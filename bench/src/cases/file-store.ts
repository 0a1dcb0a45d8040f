import type { BenchCase } from '../comparison.ts'
import { fileStoreAt } from '../stores/file.ts'

export const bench: BenchCase = {
  summary: 'A file store with 1,000,000 dead letters of 1 KB',
  comparisons: [],
  gauges: [fileStoreAt],
}
