import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import type { PayloadKeys } from './encryption.ts'
import type { FingerprintRule } from './regrouping/rules.ts'
import type { ApprovalRule } from './replay/run/lifecycle.ts'
import type { Proof } from './replay/run/options.ts'

export interface CatalogOptions {
  /**
   * A connection pool of the primary, not of a replica and not in pipeline mode. An ingest uses up to two
   * connections at the same time, every other call one.
   */
  readonly pool: Pool
  /** Encrypts the payloads of new dead letters. Without keys, payloads are stored unencrypted. Default: none. */
  readonly keys?: PayloadKeys
  /** Maximum duration of each read statement ('100ms' to '1m', default '2s'). */
  readonly searchTimeout?: Duration
  /**
   * Allowed replay targets, by source name. The origin of a dead letter is read from its headers, and every
   * producer can write those. A dead letter with an origin that is not listed is not replayed. Default: every
   * origin is allowed.
   */
  readonly origins?: Readonly<Record<string, readonly string[]>>
  /**
   * How long an ended replay run is kept with its items ('1h' to '3650d', default '90d'). A run in progress, and a
   * run with an unknown outcome, are never deleted.
   */
  readonly runRetention?: Duration
  /**
   * What shows the outcomes of replays, by source name. `'returns'`: the consumers of the source confirm nothing.
   * Default: each plan chooses it by earlier confirmations and by the selected dead letters.
   */
  readonly proofs?: Readonly<Record<string, Proof>>
  /**
   * Rules that name the group of matching dead letters, before the rules of signatures apply. The first matching rule
   * decides. They apply to new dead letters; `regrouping.apply` moves existing ones. At most 200, default: none.
   */
  readonly fingerprints?: readonly FingerprintRule[]
  /** Rule for approvals. Default `'another_person'`: the planner cannot approve their own run. */
  readonly approval?: ApprovalRule
  /**
   * How long a run can be paused and still be resumed without a new approval ('1m' to '90d', default '24h').
   */
  readonly approvalMaxPause?: Duration
  /**
   * Maximum time for all schema checks of one plan ('100ms' to '10m', default '30s'). Dead letters that were not checked
   * in it are skipped, with the reason `not_checked`.
   */
  readonly schemaTimeout?: Duration
}

/** 2 s: reading a page takes milliseconds. A search that takes longer has to be narrowed. */
const SEARCH_MS = 2_000
/** 90 days: as long as an open dead letter is kept. */
const RUN_RETENTION_MS = 7_776_000_000
const LEAST_RUN_RETENTION_MS = 3_600_000
const MOST_RUN_RETENTION_MS = 315_360_000_000
/** 24 h: after a day, what was approved may not be right any more. */
const APPROVAL_MAX_PAUSE_MS = 86_400_000
const LEAST_PAUSE_MS = 60_000
const MOST_PAUSE_MS = 7_776_000_000
/** 30 s: enough for 100,000 small bodies. A plan holds a transaction open while it checks. */
const SCHEMA_MS = 30_000
const LEAST_SCHEMA_MS = 100
const MOST_SCHEMA_MS = 600_000
const LEAST_SEARCH_MS = 100
const MOST_SEARCH_MS = 60_000

interface CheckedOptions {
  readonly timeoutMs: number
  readonly runRetentionMs: number
  readonly maxPauseMs: number
  readonly schemaTimeoutMs: number
}

export function checkedOptions({
  pool,
  searchTimeout = SEARCH_MS,
  runRetention = RUN_RETENTION_MS,
  approvalMaxPause = APPROVAL_MAX_PAUSE_MS,
  schemaTimeout = SCHEMA_MS,
}: CatalogOptions): CheckedOptions {
  const problems: string[] = []
  const maxPauseMs = parseDuration(approvalMaxPause) ?? Number.NaN
  if (!(maxPauseMs >= LEAST_PAUSE_MS && maxPauseMs <= MOST_PAUSE_MS)) {
    problems.push(`approvalMaxPause: expected '1m' to '90d', got '${approvalMaxPause}'`)
  }
  const schemaTimeoutMs = parseDuration(schemaTimeout) ?? Number.NaN
  if (!(schemaTimeoutMs >= LEAST_SCHEMA_MS && schemaTimeoutMs <= MOST_SCHEMA_MS)) {
    problems.push(`schemaTimeout: expected '100ms' to '10m', got '${schemaTimeout}'`)
  }
  const timeoutMs = parseDuration(searchTimeout) ?? Number.NaN
  if (!(timeoutMs >= LEAST_SEARCH_MS && timeoutMs <= MOST_SEARCH_MS)) {
    problems.push(`searchTimeout: expected '100ms' to '1m', got '${searchTimeout}'`)
  }
  const runRetentionMs = parseDuration(runRetention) ?? Number.NaN
  if (!(runRetentionMs >= LEAST_RUN_RETENTION_MS && runRetentionMs <= MOST_RUN_RETENTION_MS)) {
    problems.push(`runRetention: expected '1h' to '3650d', got '${runRetention}'`)
  }
  if (typeof (pool as Pool | undefined)?.connect !== 'function') {
    problems.push('pool: expected a Pool of the package "pg"')
  }
  if (problems.length === 0) {
    return { timeoutMs: Math.round(timeoutMs), runRetentionMs, maxPauseMs, schemaTimeoutMs }
  }
  const message = `The options of catalog() are invalid:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}
