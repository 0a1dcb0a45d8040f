import { urlsOf } from '@redrive/dev-support'
import { describe } from 'vitest'
import { postgresSuite } from './postgres.suite.ts'

describe('PostgreSQL, one server', () => {
  // A single server without a copy is what it is: on the pair of the proof nothing at all is found.
  postgresSuite(
    async () => (await urlsOf('postgres'))[0] ?? '',
    ['postgres.checksums', 'postgres.no-copy', 'postgres.no-synchronous-standby'],
  )
})
