// Measures how fast the server responds to users while it ingests.
import type { BenchCase } from '../comparison.ts'
import { dropLeftovers } from '../postgres/database.ts'
import { loading } from '../server/loading.ts'

export const bench: BenchCase = {
  summary: 'The API of a server with many dead letters',
  comparisons: [],
  gauges: [
    async (overrides) => {
      await dropLeftovers()
      return loading(overrides)
    },
  ],
}
