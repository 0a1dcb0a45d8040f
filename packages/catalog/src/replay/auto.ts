import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { query, type Run } from '../database.ts'
import { NAME_MAX, storable } from '../text.ts'
import { conflict } from './lifecycle.ts'

/** Replays without a person, of failures that pass by themselves. */
export interface AutoReplay {
  /** Who allows it: named as the approver of every run. */
  readonly by: string
  /** How long a group must be quiet before its dead letters go out. Default '5m'. */
  readonly quietFor?: Duration
  /** Default 10. */
  readonly ratePerSecond?: number
}

const QUIET_MS = 300_000
const RATE = 10

const ALLOW = 'update redrive_catalog.source set auto_replay = $2 where name = $1 returning id'

/** Off until someone allows it, for each source; `undefined` turns it off again. */
export async function allowAuto(
  pool: Pool,
  source: string,
  auto: AutoReplay | undefined,
): Promise<void> {
  const kept = auto === undefined ? null : JSON.stringify(resolved(auto))
  const { rowCount } = await query(pool, ALLOW, [storable(source, NAME_MAX), kept])
  if (rowCount === 0) {
    throw conflict(`There is no source '${source}' yet. It is known after its first ingest.`)
  }
}

interface KeptAuto {
  readonly by: string
  readonly quietMs: number
  readonly ratePerSecond: number
}

function resolved({ by, quietFor = QUIET_MS, ratePerSecond = RATE }: AutoReplay): KeptAuto {
  const quietMs = parseDuration(quietFor)
  if (by !== '' && quietMs !== undefined) {
    return { by: storable(by, NAME_MAX), quietMs, ratePerSecond }
  }
  throw new RedriveError(
    'POLICY_INVALID',
    `Expected who allows it, and how long it must be quiet; got '${by}' and ${quietFor}`,
  )
}

/**
 * What passed by itself: transient, open, quiet for long enough, and muted by nobody. The count of open ones
 * has those in it whose outcome is unknown, which no plan takes: one that is open must be there.
 */
const DUE = `
select g.id, s.name as source, s.auto_replay ->> 'by' as by, (s.auto_replay ->> 'ratePerSecond')::float8 as rate,
    to_char(now(), 'YYYY-MM-DD HH24') as hour
  from redrive_catalog.source s join redrive_catalog.failure_group g on g.source_id = s.id
  where s.name = any($1::text[]) and s.auto_replay is not null and g.class = 'transient' and g.state = 'open'
    and g.open_count > 0
    and exists (select from redrive_catalog.dead_letter d where d.group_id = g.id and d.status = 'open')
    and g.last_seen_at < now() - (s.auto_replay ->> 'quietMs')::float8 * interval '1 millisecond'
    and not exists (select from redrive_catalog.replay_run r where r.source_id = s.id and r.state in ('running', 'paused'))
  order by g.id limit 100`

/** A group whose dead letters may go out now. */
export interface DueGroup {
  readonly id: string
  readonly source: string
  readonly by: string
  readonly rate: number
  /** Names the hour: a group is tried once in each. */
  readonly hour: string
}

const STILL = `
select from redrive_catalog.source s join redrive_catalog.failure_group g on g.source_id = s.id
  where g.id = $1 and s.auto_replay is not null and g.state = 'open'`

/** Whether nobody has forbidden it since, nor muted or resolved the group: the plans before it took their time. */
export const isStillDue = async (run: Run, group: string): Promise<boolean> =>
  (await run(STILL, [group])).length > 0

export async function dueGroups(
  pool: Pool,
  sources: readonly string[],
): Promise<readonly DueGroup[]> {
  const { rows } = await query<DueGroup>(pool, DUE, [sources])
  return rows
}
