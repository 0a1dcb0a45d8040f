import { urlsOf } from '@redrive/dev-support'
import { describe } from 'vitest'
import { postgresSuite } from './postgres.suite.ts'

describe('PostgreSQL, one server', () => {
  // Findings of every single server without a replica; the pair of the proof has none.
  postgresSuite(
    async () => (await urlsOf('postgres'))[0] ?? '',
    ['postgres.checksums', 'postgres.no-copy', 'postgres.no-synchronous-standby'],
  )
})
