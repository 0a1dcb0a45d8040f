/** A consumer that records exactly what it received; everything fails the first time. */
import { consume } from '@redrive/runtime'
import { openDatabase } from '../../../harness/effects.ts'
import { brokerOf } from '../../brokers/broker.ts'
import type { Where } from '../../options.ts'
import { ready } from '../../../harness/process.ts'
import { hashOf, headersHash } from './samples.ts'

const options = JSON.parse(process.argv[2] ?? '') as Where
const pool = openDatabase(options.consumerUrl)
const broker = await brokerOf(options.kind)

await pool.query(
  'create table if not exists drill_got (sample text, cycle integer, body text, headers text)',
)
await consume<Uint8Array | null>(
  broker.transport(options, pool),
  async ({ body, headers }, { cycle }) => {
    const { sample, ...others } = headers
    const got = [sample, cycle, hashOf(body), headersHash(others)]
    await pool.query('insert into drill_got values ($1, $2, $3, $4)', got)
    if (cycle === 1) throw new Error('cannot be read')
  },
  {
    // One at a time. The test measures the memory of other processes, and this machine has to run
    // both.
    concurrency: 1,
    decode: (bytes, { isTombstone }) => (isTombstone === true ? null : bytes),
    retry: { attempts: 1 },
    ...{ adaptiveConcurrency: 'off', poison: 'off', flood: 'off', breaker: 'off', outage: 'off' },
  },
)
ready()
