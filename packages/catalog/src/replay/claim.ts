import type { Pool } from 'pg'
import { inTransaction, type Run } from '../database.ts'
import { judge, LATEST, type Lately } from './judge.ts'
import { pauseRun } from './lifecycle.ts'
import type { RunOptions } from './options.ts'
import { ITEM_STATES, type ItemCounts } from './runs.ts'

/** 5 s: so long a run stands still when the worker that has it dies. A turn that takes longer keeps it. */
const LEASE = `interval '5 seconds'`
/** 1 s: four in a row may fail before a lease is lost. */
const KEEP_MS = 1_000
/** 1 s of publishing in one turn: a pause is never later than that. */
const TURN_S = 1
/** 500 in one turn, whatever the rate: what is read into memory at once. */
const TURN_MAX = 500
/** 250 ms that were lost between two turns are made up for; more would be a burst. */
const CATCH_UP = `interval '250 milliseconds'`

/** What one worker may publish now. */
export interface Claim {
  readonly runId: string
  readonly source: string
  readonly change: unknown
  readonly token: string
  /** When the run was let go last, as the database writes it. */
  readonly resumedAt: string
  readonly items: readonly ClaimedItem[]
  /** Until the first may go, and between two. Below 0: so much is to be made up for. */
  readonly waitMs: number
  readonly spacingMs: number
}

export interface ClaimedItem {
  readonly place: number
  readonly dead_letter_id: string
  readonly replay_id: string
  readonly content: string | null
  readonly publishes: number
}

/**
 * The run that waits longest, and that no other worker has in hand: what is later in a lane must not
 * overtake what is still on its way.
 */
const PICK = `
select r.id, r.source_id, s.name as source, r.options, r.change, ${ITEM_STATES.map((state) => `r.${state}`).join(', ')},
    r.resumed_at::text, extract(epoch from clock_timestamp() - r.resumed_at)::float8 * 1000 as since_ms
  from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id
  where r.state = 'running' and s.name = any($1::text[]) and not exists (
      select from redrive_catalog.replay_item i where i.run_id = r.id and i.state in ('claimed', 'publishing')
        and i.lease_until >= clock_timestamp())
  order by r.claimed_at nulls first limit 1 for no key update of r skip locked`

/** In a statement of its own: the one above may have waited, and saw who has what before that. */
const TAKEN = `
select from redrive_catalog.replay_item
  where run_id = $1 and state in ('claimed', 'publishing') and lease_until >= clock_timestamp() limit 1`

async function isTaken(run: Run, id: string): Promise<boolean> {
  return (await run(TAKEN, [id])).length > 0
}

/** Items go out in the order of their places: those since the first of the latest, which nobody proves, are not failures. */
const SINCE = `
select count(*) from redrive_catalog.replay_item
  where run_id = $1 and state in ('published', 'unknown') and place >= (select min(place) from latest)
    and place < coalesce((select min(place) from redrive_catalog.replay_item where run_id = $1 and state = 'queued'), 1e9)`

const LATELY = `
with latest as (
  select i.place, i.state, i.settled_at, i.published_at from redrive_catalog.replay_item i, redrive_catalog.replay_run r
    where r.id = $1 and i.run_id = r.id and i.state in ('resolved', 'refailed') and i.settled_at > r.resumed_at
    order by i.settled_at desc limit ${LATEST}
)
select count(*)::integer + case when $2 then (${SINCE})::integer else 0 end as settled,
    count(*) filter (where state = 'refailed')::integer as refailed,
    coalesce(max(extract(epoch from settled_at - published_at)), 0)::float8 * 1000 as slowest_ms,
    coalesce(extract(epoch from clock_timestamp() - max(settled_at)), 1e9)::float8 * 1000 as quiet_ms,
    coalesce(extract(epoch from clock_timestamp() - (
      select published_at from redrive_catalog.replay_item where run_id = $1 and state = 'published'
        order by place limit 1)), 0)::float8 * 1000 as unproven_ms
  from latest`

const TOUCH = `update redrive_catalog.replay_run set claimed_at = clock_timestamp() where id = $1`

/** The token is new for each claim: whoever had a row before can no longer change it. */
const TAKE = `
with lapsed as (
  select place from redrive_catalog.replay_item
    where run_id = $1 and state in ('claimed', 'publishing') and lease_until < clock_timestamp()
    order by place limit $2 for no key update skip locked
), queued as (
  select place from redrive_catalog.replay_item where run_id = $1 and state = 'queued'
    order by place limit $3 for no key update skip locked
), picked as (select place from lapsed union all select place from queued)
update redrive_catalog.replay_item i set lease_token = $4, lease_until = clock_timestamp() + ${LEASE},
    state = 'claimed'
  from picked p where i.run_id = $1 and i.place = p.place
  returning i.place, i.dead_letter_id, i.replay_id, encode(i.content_sha256, 'hex') as content, i.publishes`

const RATE = `
insert into redrive_catalog.replay_rate as r (source_id, next_at)
  values ($1, clock_timestamp() + $2 * interval '1 millisecond')
  on conflict (source_id) do update set
    next_at = greatest(r.next_at, clock_timestamp() - ${CATCH_UP}) + $2 * interval '1 millisecond'
  returning extract(epoch from next_at - clock_timestamp())::float8 * 1000 - $2 as wait_ms`

interface PickedRun extends ItemCounts {
  readonly id: string
  readonly source_id: number
  readonly source: string
  readonly options: RunOptions
  readonly change: unknown
  readonly resumed_at: string
  readonly since_ms: number
}

/** No proof came to a run of this source for long. */
export interface Stalled {
  readonly stalled: string
}

/**
 * What may go out now, or undefined. Pauses a run that must not go on. One that waits for proofs pauses only
 * when someone has just looked for them: they may be there, and nobody had the time to take them.
 */
export async function claim(
  pool: Pool,
  sources: readonly string[],
  lookedAt?: string,
): Promise<Claim | Stalled | undefined> {
  return inTransaction(pool, async (run) => {
    const [picked] = await run<PickedRun>(PICK, [sources])
    if (picked === undefined || (await isTaken(run, picked.id))) return undefined
    const judgement = judge(picked, picked.options, await latelyOf(run, picked))
    if ('stalled' in judgement && picked.source !== lookedAt) return { stalled: picked.source }
    await run(TOUCH, [picked.id])
    if ('go' in judgement) return take(run, picked, judgement.go)
    await pauseRun(run, picked.id, 'pause' in judgement ? judgement.pause : judgement.stalled)
    return undefined
  })
}

async function latelyOf(run: Run, { id, since_ms, options }: PickedRun): Promise<Lately> {
  const isUnproven = options.unproven === 'go_on'
  const [row] = await run<Readonly<Record<string, number>>>(LATELY, [id, isUnproven])
  const { settled = 0, refailed = 0, slowest_ms = 0, quiet_ms = 0, unproven_ms = 0 } = row ?? {}
  return {
    settled,
    refailed,
    slowestMs: slowest_ms,
    quietMs: Math.min(quiet_ms, since_ms),
    unprovenMs: unproven_ms,
  }
}

async function take(run: Run, picked: PickedRun, go: number): Promise<Claim | undefined> {
  const { id, source, source_id, change, options, resumed_at: resumedAt } = picked
  const most = Math.min(TURN_MAX, Math.max(1, Math.floor(options.ratePerSecond * TURN_S)))
  const [next] = await run<{ token: string }>(
    `select nextval('redrive_catalog.replay_token') as token`,
  )
  const token = next?.token ?? ''
  const items = await run<ClaimedItem>(TAKE, [id, most, Math.min(go, most), token])
  if (items.length === 0) return undefined
  const spacingMs = 1_000 / options.ratePerSecond
  const [rate] = await run<{ wait_ms: number }>(RATE, [source_id, items.length * spacingMs])
  return {
    runId: id,
    source,
    change,
    token,
    resumedAt,
    items: items.toSorted((a, b) => a.place - b.place),
    waitMs: rate?.wait_ms ?? 0,
    spacingMs,
  }
}

/** What has lapsed stays so: someone else may be about to take it. */
const KEEP = `
update redrive_catalog.replay_item set lease_until = clock_timestamp() + ${LEASE}
  where run_id = $1 and lease_token = $2 and state in ('claimed', 'publishing') and lease_until >= clock_timestamp()`

/** Does the work with a claim that stays ours meanwhile, however long the broker takes for its proofs. */
export async function keeping<T>(
  pool: Pool,
  { runId, token }: Claim,
  work: () => Promise<T>,
): Promise<T> {
  const timer = setInterval(() => {
    // The next one makes up for it; when all fail, the lease is lost, as it should be.
    pool.query(KEEP, [runId, token]).catch(() => undefined)
  }, KEEP_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}

/** Records the hash of each body before it is published: a message that returns is compared with it. */
const BEGIN = `
update redrive_catalog.replay_item i set state = 'publishing', publishes = i.publishes + 1,
    content_sha256 = decode(b.content, 'hex'), lease_until = clock_timestamp() + ${LEASE}
  from redrive_catalog.replay_run r, unnest($3::integer[], $4::text[]) as b (place, content)
  where i.run_id = $1 and i.lease_token = $2 and i.place = b.place and i.state in ('claimed', 'publishing')
    and r.id = i.run_id and r.state = 'running'
  returning i.place`

/** An item that is about to be published. */
export interface Beginning {
  readonly place: number
  /** SHA-256 of its body, hex. */
  readonly content: string
}

/** Those that are still ours and may be out from now on. */
export const begin = (
  pool: Pool,
  claim: Claim,
  items: readonly Beginning[],
): Promise<Set<number>> =>
  update(
    pool,
    BEGIN,
    claim,
    items.map(({ place }) => place),
    items.map(({ content }) => content),
  )

const PUBLISHED = `
update redrive_catalog.replay_item set state = 'published', published_at = clock_timestamp(), lease_until = null,
    reason = null
  where run_id = $1 and lease_token = $2 and place = any($3::integer[]) and state = 'publishing'
  returning place`

/** Those of which the broker has proven that it has them. */
export const markPublished = (
  pool: Pool,
  claim: Claim,
  places: readonly number[],
): Promise<Set<number>> => update(pool, PUBLISHED, claim, places)

async function update(
  pool: Pool,
  text: string,
  { runId, token }: Claim,
  places: readonly number[],
  ...more: readonly unknown[]
): Promise<Set<number>> {
  if (places.length === 0) return new Set()
  const { rows } = await pool.query<{ place: number }>(text, [runId, token, places, ...more])
  return new Set(rows.map(({ place }) => place))
}
