import { createHash, randomUUID } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explaining, inTransaction, isDuplicate, query, type Run } from '../database.ts'
import { sha256Of, uuidOf } from '../ingest/identity.ts'
import { compileDeadLetters } from '../read/compile.ts'
import { NAME_MAX, storable } from '../text.ts'
import { keepChange } from './change.ts'
import { type Candidate, type Verdict, verdictOf } from './gates.ts'
import {
  type ReplayRequest,
  type ReplaySelection,
  resolveRequest,
  type RunOptions,
} from './options.ts'
import { checkBodies, type Examined } from './preflight.ts'
import type { ReplayParts } from './parts.ts'
import { readRun, type ReplayRun } from './runs.ts'

/** 100,000: what one transaction freezes in seconds. */
const ITEMS_MAX = 100_000
/** 60 s: long enough for all of them, and an end. */
const SETTINGS = `set transaction isolation level repeatable read; set local statement_timeout = '60s';
  set local enable_seqscan = off; set local enable_bitmapscan = off; set local jit = off`

/**
 * Freezes the selection as rows, passes each through the gates, and hashes what would go out. Nothing is
 * held by a plan: it can be thrown away, and whoever approves first gets what two plans have in common.
 */
export async function plan(parts: ReplayParts, request: ReplayRequest): Promise<ReplayRun> {
  const options = resolveRequest(request)
  return explaining(async () => {
    const id = await plannedOnce(parts, request, options)
    return (await readRun(parts.pool, id)) as ReplayRun
  })
}

async function plannedOnce(
  parts: ReplayParts,
  request: ReplayRequest,
  options: RunOptions,
): Promise<string> {
  const known = await plannedBefore(parts.pool, request)
  if (known !== undefined) return known
  try {
    return await planned(parts, request, options)
  } catch (error) {
    // Asked twice at the same moment, and the other was first.
    const other = isDuplicate(error) ? await plannedBefore(parts.pool, request) : undefined
    if (other === undefined) throw error
    return other
  }
}

async function plannedBefore(pool: Pool, { request }: ReplayRequest): Promise<string | undefined> {
  if (request === undefined) return undefined
  const { rows } = await query<{ id: string }>(
    pool,
    'select id from redrive_catalog.replay_run where request = $1',
    [storable(request, NAME_MAX)],
  )
  return rows[0]?.id
}

async function planned(
  parts: ReplayParts,
  request: ReplayRequest,
  options: RunOptions,
): Promise<string> {
  const id = randomUUID()
  const change = await keepChange(request.change, id, parts.keys)
  await inTransaction(
    parts.pool,
    async (run) => {
      const { sourceId, candidates } = await chosen(run, request.selection)
      refuseUnseen(request, candidates)
      const isForced = request.change !== undefined && 'force' in request.change
      const origins = parts.origins[await nameOf(run, sourceId)]
      const grounds = { options, isForced, origins }
      const first = candidates.map((one) => ({ ...one, verdict: verdictOf(one, grounds) }))
      const examined = await checkBodies(run, parts, { sourceId, change: request.change }, first)
      await store(run, { id, sourceId, request, options, change, examined })
    },
    SETTINGS,
  )
  return id
}

const NAME = 'select name from redrive_catalog.source where id = $1'

async function nameOf(run: Run, sourceId: number): Promise<string> {
  const [row] = await run<{ name: string }>(NAME, [sourceId])
  return row?.name ?? ''
}

const COLUMNS = `
select d.id, d.status, d.version, d.cycle, d.type, d.payload_bytes, d.is_quarantined, d.source_id, d.origin,
    extract(epoch from now() - d.first_failed_at)::float8 * 1000 as age_ms,
    extract(epoch from now() - d.last_failed_at)::float8 * 1000 as since_last_ms,
    (select i.run_id from redrive_catalog.replay_item i where i.dead_letter_id = d.id
      and i.state in ('queued', 'claimed', 'publishing', 'published', 'unknown')) as run_id,
    coalesce((select c.group_id = d.group_id from redrive_catalog.failure_cycle c
      where c.dead_letter_id = d.id and c.cycle = d.cycle - 1), false) as is_same_failure`

const BY_ID = `${COLUMNS} from redrive_catalog.dead_letter d where d.id = any($1::uuid[]) order by d.id`

interface Chosen {
  readonly sourceId: number
  readonly candidates: readonly Candidate[]
}

/** The oldest first: what is later in the same lane must not overtake it. */
async function chosen(run: Run, selection: ReplaySelection): Promise<Chosen> {
  const found = await candidatesOf(run, selection)
  if (found.length > ITEMS_MAX) {
    const most = ITEMS_MAX.toLocaleString('en')
    throw refused(
      `The selection has more than ${most} dead letters. Narrow it, for example by time.`,
    )
  }
  const [first] = found
  if (first === undefined) throw refused('The selection has no dead letters.')
  if (found.some(({ source_id }) => source_id !== first.source_id)) {
    throw refused('The selection has dead letters of several sources. Plan a run for each.')
  }
  return { sourceId: first.source_id, candidates: found }
}

function refuseUnseen({ seenVersion }: ReplayRequest, candidates: readonly Candidate[]): void {
  const isSeen = candidates.every(({ version }) => version === seenVersion)
  if (seenVersion === undefined || isSeen) return
  throw new RedriveError('CONFLICT', 'The dead letter was changed since. Look at it again.')
}

type Found = Candidate & { readonly source_id: number }

async function candidatesOf(run: Run, selection: ReplaySelection): Promise<readonly Found[]> {
  if ('ids' in selection) return run<Found>(BY_ID, [selection.ids])
  const query = 'group' in selection ? { groups: [selection.group] } : selection.query
  const { text, values } = compileDeadLetters({ ...query, most: ITEMS_MAX })
  const text2 = `${COLUMNS} from (select q.id from (${text}) q) f
    join redrive_catalog.dead_letter d on d.id = f.id order by d.id`
  return run<Found>(text2, values)
}

export const refused = (message: string): RedriveError =>
  new RedriveError('POLICY_INVALID', message, { problems: [message] })

interface Plan {
  readonly id: string
  readonly sourceId: number
  readonly request: ReplayRequest
  readonly options: RunOptions
  readonly change: unknown
  readonly examined: readonly Examined[]
}

const INSERT_RUN = `
insert into redrive_catalog.replay_run
    (id, source_id, request, hash, asked, options, change, note, planned_by, planned, skipped)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

const INSERT_ITEMS = `
insert into redrive_catalog.replay_item
    (run_id, place, dead_letter_id, replay_id, cycle, version, state, reason, other_run, content_sha256)
  select $1, i.place, i.dead_letter_id, i.replay_id, i.cycle, i.version, i.state, i.reason, i.other_run,
      decode(i.content, 'hex')
    from unnest($2::integer[], $3::uuid[], $4::uuid[], $5::integer[], $6::integer[], $7::text[], $8::text[],
      $9::uuid[], $10::text[]) as i (place, dead_letter_id, replay_id, cycle, version, state, reason, other_run, content)`

/** How often each was on the wire in the cycle it has now: a second time on purpose is another replay. */
const REPEATS = `
select dead_letter_id as id, count(*)::integer as times
  from redrive_catalog.replay_item i join unnest($1::uuid[], $2::integer[]) as c (id, cycle)
    on i.dead_letter_id = c.id and i.cycle = c.cycle
  where i.state not in ('planned', 'skipped', 'cancelled') group by 1`

async function store(run: Run, plan: Plan): Promise<void> {
  const { id, sourceId, request, options, change, examined } = plan
  const { by, note = '', selection, request: name } = request
  const isOut = ({ verdict }: Examined) => verdict === 'replay'
  const out = examined.filter(isOut)
  const again = await run<{ id: string; times: number }>(REPEATS, [
    out.map((one) => one.id),
    out.map(({ cycle }) => cycle),
  ])
  const times = new Map(again.map((one) => [one.id, one.times]))
  await run(INSERT_RUN, [
    id,
    sourceId,
    name === undefined ? null : storable(name, NAME_MAX),
    hashOf(plan),
    JSON.stringify(selection),
    JSON.stringify(options),
    change === null ? null : JSON.stringify(change),
    storable(note, note.length),
    storable(by, NAME_MAX),
    out.length,
    examined.length - out.length,
  ])
  await run(INSERT_ITEMS, [
    id,
    examined.map((_, place) => place),
    examined.map((one) => one.id),
    examined.map((one) => replayId(one.id, one.cycle, times.get(one.id) ?? 0)),
    examined.map(({ cycle }) => cycle),
    examined.map(({ version }) => version),
    examined.map((one) => (isOut(one) ? 'planned' : 'skipped')),
    examined.map(({ verdict, why }) => (verdict === 'replay' ? null : reasonText(verdict, why))),
    examined.map(({ run_id }) => run_id),
    examined.map(({ content }) => content ?? null),
  ])
}

const reasonText = (verdict: Verdict, why: string | undefined) =>
  why === undefined ? verdict : `${verdict}: ${storable(why, NAME_MAX)}`

/** The same for the same dead letter and cycle, wherever and whenever it is made. */
function replayId(deadLetterId: string, cycle: number, times: number): string {
  const name = JSON.stringify(['replay', deadLetterId, cycle, times])
  return uuidOf(sha256Of(name))
}

/**
 * What an approver agrees to: which, what becomes of them, and how. With something random, so that who knows
 * a body but for a masked value cannot find that by trying.
 */
function hashOf({ sourceId, options, change, examined }: Plan): string {
  const hash = createHash('sha256')
  hash.update(JSON.stringify([1, randomUUID(), sourceId, options, change]))
  for (const { id, cycle, version, verdict, content } of examined) {
    hash.update(JSON.stringify([id, cycle, version, verdict, content ?? null]))
  }
  return hash.digest('hex')
}
