import type { Evidence } from '../../evidence/evidence.ts'
import { POLICY } from '../../harness/consumer-options.ts'
import { openDatabase } from '../../harness/effects.ts'
import { ready } from '../../harness/fleet.ts'
import { percentile } from '../../evidence/lateness.ts'
import { atScale } from '../../harness/scenario.ts'
import type { QueryName } from '../queries.ts'
import { LONG_LEASE_MS, type PostgresScenario, type PostgresWorld } from '../world.ts'

const RATE = 500
/**
 * 50 ms for a claim on top of a commit, for 99 in a hundred; twice that on a busy machine. A commit
 * waits for the same disk and cores, and dead rows do not slow it down.
 */
const CLAIM_MS = { full: 50, quick: 100 } as const

export const idleTransaction: PostgresScenario = {
  name: 'idle-transaction',
  story: `a forgotten transaction keeps every row version alive during ${RATE} messages per second`,
  service: 'postgres',
  messages: { quick: 20 * RATE, full: 180 * RATE },
  async play(world) {
    const fleet = world.fleet({
      policy: { ...POLICY, concurrency: 10, adaptiveConcurrency: 'off' },
      lease: LONG_LEASE_MS,
    })
    fleet.start()
    fleet.start()
    await ready(fleet, 2)
    const end = world.fault('a forgotten transaction')
    const forgotten = openDatabase(world.database.url, { connections: 1 })
    const client = await forgotten.connect()
    world.atEnd(async () => {
      client.release(true)
      await forgotten.end()
    })
    await client.query('begin isolation level repeatable read')
    await client.query('select count(*) from redrive.outbox')
    await world.produce({ ratePerSecond: RATE })
    // Measured before the transaction ends: the rows that no vacuum could remove.
    await measureDead(world)
    end()
    world.heal()
  },
  summarize(evidence) {
    const claims = durationsIn(evidence, 'claim')
    const [p50, p99] = [percentile(claims, 50), percentile(claims, 99)]
    const commit = percentile(durationsIn(evidence, 'inbox commit'), 99)
    return `claims ${p50} ms at p50, ${p99} ms at p99, ${claims.at(-1) ?? 0} ms at most, commits ${commit} ms at p99, ${deadIn(evidence)} dead rows`
  },
  check(evidence, { scale }) {
    const p99 = percentile(durationsIn(evidence, 'claim'), 99)
    const most = atScale(CLAIM_MS, scale) + percentile(durationsIn(evidence, 'inbox commit'), 99)
    return p99 <= most
      ? []
      : [{ rule: 'scenario', text: `claims take ${p99} ms at p99, allowed are ${most} ms` }]
  },
}

const DEAD = `
select sum(n_dead_tup)::int as dead from pg_stat_user_tables
where schemaname = 'redrive' and relname like 'outbox%'`

async function measureDead({ database, history }: PostgresWorld): Promise<void> {
  const { rows } = await database.pool.query<{ dead: number }>(DEAD)
  history.write({ what: 'measured', name: 'dead rows', value: rows[0]?.dead ?? 0 })
}

const deadIn = ({ entries }: Evidence): number =>
  entries.findLast((entry) => entry.what === 'measured')?.value ?? 0

/** Returns the durations of all queries with this name, sorted. */
function durationsIn({ entries }: Evidence, name: QueryName): readonly number[] {
  const all = entries.flatMap((entry) =>
    entry.what === 'queries' && entry.name === name ? entry.ms : [],
  )
  return all.sort((a, b) => a - b)
}
