import type { Pool } from 'pg'
import { inTransaction, type RunSql } from '../../database.ts'
import { flowDecision, isConfirmed, type RecentOutcomes } from './flow-control.ts'
import { pauseRun } from '../run/lifecycle.ts'
import type { RunOptions } from '../run/options.ts'
import type { ItemCounts } from '../run/states.ts'
import type { ReplayKey } from '../signed-id.ts'
import {
  ADD_RATE,
  BEGIN_PUBLISHING,
  DUE_ITEMS,
  IS_TAKEN,
  NEXT_TOKEN,
  PICK_RUN,
  RECENT_OUTCOMES,
  RENEW_LEASE,
  RESERVE_RATE,
  RUN_CLAIMED,
  RUN_WAITS,
  SET_PUBLISHED,
  TAKE_ITEMS,
} from './statements.ts'

/** 1 s: four renewals in a row can fail before the lease expires. */
const RENEW_MS = 1_000
/** 500 items per turn at any rate: it bounds the memory. */
const TURN_MAX = 500

/** The items of a run that one worker may publish now. */
export interface Claim {
  readonly runId: string
  readonly source: string
  readonly sourceId: number
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

/** A run without items that may be published now. It waits for outcomes, is paused now, or another worker has it. */
interface WaitingRun {
  readonly waiting: string
}

/** Parameters of a claim. */
export interface ClaimOptions {
  readonly sources: readonly string[]
  /** The source whose confirmations the caller has just read. Default: none. */
  readonly confirmedSource?: string | undefined
}

/**
 * Claims items of any run that are due now, or returns undefined. It looks at every run with due items: a run that
 * waits for outcomes does not delay the others.
 */
export async function claim(
  pool: Pool,
  options: ClaimOptions,
): Promise<Claim | StalledRun | undefined> {
  const waiting: string[] = []
  for (;;) {
    const found = await claimNext(pool, options, waiting)
    if (found === undefined || !('waiting' in found)) return found
    waiting.push(found.waiting)
  }
}

/**
 * Claims items of the next run. Pauses a run that must not continue. A run without confirmations is paused only if
 * the caller has just read the confirmations of its source. They may have arrived without being read.
 */
async function claimNext(
  pool: Pool,
  { sources, confirmedSource }: ClaimOptions,
  waiting: readonly string[],
): Promise<Claim | StalledRun | WaitingRun | undefined> {
  return inTransaction(pool, async (run) => {
    const [picked] = await run<PickedRun>(PICK_RUN, [sources, waiting])
    if (picked === undefined) return undefined
    if (await isTaken(run, picked.id)) return { waiting: picked.id }
    const decision = flowDecision(picked, picked.options, await recentOutcomesOf(run, picked))
    if ('stalled' in decision && picked.source !== confirmedSource) {
      return { stalled: picked.source }
    }
    await run(RUN_CLAIMED, [picked.id])
    if ('go' in decision) return (await take(run, picked, decision.go)) ?? { waiting: picked.id }
    await pauseRun(run, picked.id, 'pause' in decision ? decision.pause : decision.stalled)
    return { waiting: picked.id }
  })
}

async function recentOutcomesOf(
  run: RunSql,
  { id, since_ms, options }: PickedRun,
): Promise<RecentOutcomes> {
  const isUnconfirmed = !isConfirmed(options) || options.onUnconfirmed === 'continue'
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
  const spacingMs = 1_000 / options.ratePerSecond
  const { first, count, wait_ms: waitMs } = await dueItems(run, id, source_id, spacingMs)
  const most = Math.min(TURN_MAX, count)
  if (most <= 0) return undefined
  const [next] = await run<{ token: string }>(NEXT_TOKEN)
  const token = next?.token ?? ''
  const items = await run<ClaimedItem>(TAKE_ITEMS, [id, most, Math.min(go, most), token])
  if (items.length === 0) {
    await run(RUN_WAITS, [id])
    return undefined
  }
  await run(RESERVE_RATE, [id, items.length, first, spacingMs])
  return {
    runId: id,
    source,
    sourceId: source_id,
    change,
    token,
    resumedAt,
    items: items.toSorted((a, b) => a.place - b.place),
    waitMs,
    spacingMs,
  }
}

interface DueItems {
  /** When the first of them is due, as text of the database. */
  readonly first: string
  readonly count: number
  /** Time until the first of them is due. Negative: it is late by this time. */
  readonly wait_ms: number
}

/** Returns how many items of a run are due now. Locks the rate of its source. */
async function dueItems(
  run: RunSql,
  id: string,
  sourceId: number,
  spacingMs: number,
): Promise<DueItems> {
  const [due] = await run<DueItems>(DUE_ITEMS, [id, spacingMs])
  if (due !== undefined) return due
  await run(ADD_RATE, [sourceId])
  return dueItems(run, id, sourceId, spacingMs)
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
export interface BeginningItem {
  readonly place: number
  /** SHA-256 of its body, hex. */
  readonly content: string
}

/**
 * Marks items as publishing. Returns the keys of the items that this claim still owns, by position; null for an item
 * that an earlier release published without a key.
 */
export async function begin(
  pool: Pool,
  { runId, token }: Claim,
  items: readonly BeginningItem[],
): Promise<ReadonlyMap<number, ReplayKey | null>> {
  if (items.length === 0) return new Map()
  const places = items.map(({ place }) => place)
  const contents = items.map(({ content }) => content)
  const values = [runId, token, places, contents]
  const { rows } = await pool.query<BegunItem>(BEGIN_PUBLISHING, values)
  return new Map(
    rows.map(({ place, key_id: id, secret }) => [
      place,
      id === null || secret === null ? null : { id, secret },
    ]),
  )
}

interface BegunItem {
  readonly place: number
  readonly key_id: number | null
  readonly secret: Buffer | null
}

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
): Promise<Set<number>> {
  if (places.length === 0) return new Set()
  const { rows } = await pool.query<{ place: number }>(text, [runId, token, places])
  return new Set(rows.map(({ place }) => place))
}
