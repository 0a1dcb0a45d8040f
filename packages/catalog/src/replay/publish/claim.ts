import type { Pool } from 'pg'
import { inTransaction, type RunSql } from '../../database.ts'
import { flowDecision, type RecentOutcomes } from './flow-control.ts'
import { pauseRun } from '../run/lifecycle.ts'
import type { RunOptions } from '../run/options.ts'
import type { ItemCounts } from '../run/states.ts'
import {
  BEGIN_PUBLISHING,
  IS_TAKEN,
  NEXT_TOKEN,
  PICK_RUN,
  RECENT_OUTCOMES,
  RENEW_LEASE,
  RESERVE_RATE,
  RUN_CLAIMED,
  SET_PUBLISHED,
  TAKE_ITEMS,
} from './statements.ts'

/** 1 s: four renewals in a row can fail before the lease expires. */
const RENEW_MS = 1_000
/** 1 s of publishing per turn: a pause takes effect within this time. */
const TURN_S = 1
/** 500 items per turn at any rate: it bounds the memory. */
const TURN_MAX = 500
/** The items of a run that one worker may publish now. */
export interface Claim {
  readonly runId: string
  readonly source: string
  readonly change: unknown
  readonly token: string
  /** When the run was last started or resumed, as text of the database. */
  readonly resumedAt: string
  readonly items: readonly ClaimedItem[]
  /** Time until the first publish. Negative: the publishes are late by this time. */
  readonly waitMs: number
  /** Time between two publishes. */
  readonly spacingMs: number
}

export interface ClaimedItem {
  readonly place: number
  readonly dead_letter_id: string
  readonly replay_id: string
  readonly content: string | null
  readonly publishes: number
}

async function isTaken(run: RunSql, id: string): Promise<boolean> {
  return (await run(IS_TAKEN, [id])).length > 0
}

interface PickedRun extends ItemCounts {
  readonly id: string
  readonly source_id: number
  readonly source: string
  readonly options: RunOptions
  readonly change: unknown
  readonly resumed_at: string
  readonly since_ms: number
}

/** A run of this source that has received no confirmation for a long time. */
export interface StalledRun {
  readonly stalled: string
}

/**
 * Claims items that may be published now, or returns undefined. Pauses a run that must not continue. A run
 * without confirmations is paused only if the caller has just read the confirmations of its source. They may
 * have arrived without being read.
 */
export async function claim(
  pool: Pool,
  sources: readonly string[],
  confirmedSource?: string,
): Promise<Claim | StalledRun | undefined> {
  return inTransaction(pool, async (run) => {
    const [picked] = await run<PickedRun>(PICK_RUN, [sources])
    if (picked === undefined || (await isTaken(run, picked.id))) return undefined
    const decision = flowDecision(picked, picked.options, await recentOutcomesOf(run, picked))
    if ('stalled' in decision && picked.source !== confirmedSource) {
      return { stalled: picked.source }
    }
    await run(RUN_CLAIMED, [picked.id])
    if ('go' in decision) return take(run, picked, decision.go)
    await pauseRun(run, picked.id, 'pause' in decision ? decision.pause : decision.stalled)
    return undefined
  })
}

async function recentOutcomesOf(
  run: RunSql,
  { id, since_ms, options }: PickedRun,
): Promise<RecentOutcomes> {
  const isUnconfirmed = options.onUnconfirmed === 'continue'
  const [row] = await run<Readonly<Record<string, number>>>(RECENT_OUTCOMES, [id, isUnconfirmed])
  const {
    settled = 0,
    failedAgain = 0,
    slowest_ms = 0,
    quiet_ms = 0,
    unconfirmed_ms = 0,
  } = row ?? {}
  return {
    settled,
    failedAgain,
    slowestMs: slowest_ms,
    quietMs: Math.min(quiet_ms, since_ms),
    unconfirmedMs: unconfirmed_ms,
  }
}

async function take(run: RunSql, picked: PickedRun, go: number): Promise<Claim | undefined> {
  const { id, source, source_id, change, options, resumed_at: resumedAt } = picked
  const most = Math.min(TURN_MAX, Math.max(1, Math.floor(options.ratePerSecond * TURN_S)))
  const [next] = await run<{ token: string }>(NEXT_TOKEN)
  const token = next?.token ?? ''
  const items = await run<ClaimedItem>(TAKE_ITEMS, [id, most, Math.min(go, most), token])
  if (items.length === 0) return undefined
  const spacingMs = 1_000 / options.ratePerSecond
  const [rate] = await run<{ wait_ms: number }>(RESERVE_RATE, [source_id, items.length * spacingMs])
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

/** Runs `work` and renews the lease of the claim until it ends, even if broker confirmations take long. */
export async function keeping<T>(
  pool: Pool,
  { runId, token }: Claim,
  work: () => Promise<T>,
): Promise<T> {
  const timer = setInterval(() => {
    // If a renewal fails, the next one replaces it. If all fail, the lease expires as intended.
    pool.query(RENEW_LEASE, [runId, token]).catch(() => undefined)
  }, RENEW_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}

/** An item that is about to be published. */
export interface Beginning {
  readonly place: number
  /** SHA-256 of its body, hex. */
  readonly content: string
}

/** Marks items as publishing. Returns the positions of items that this claim still owns. */
export const begin = (
  pool: Pool,
  claim: Claim,
  items: readonly Beginning[],
): Promise<Set<number>> =>
  update(
    pool,
    BEGIN_PUBLISHING,
    claim,
    items.map(({ place }) => place),
    items.map(({ content }) => content),
  )

/** Marks items as published after the broker has confirmed them. Returns the positions of changed items. */
export const markPublished = (
  pool: Pool,
  claim: Claim,
  places: readonly number[],
): Promise<Set<number>> => update(pool, SET_PUBLISHED, claim, places)

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
