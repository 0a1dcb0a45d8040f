import type { KeyObject } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction, type RunSql } from '../database.ts'
import { GENESIS, hashOf } from './chain.ts'
import {
  type Checkpoint,
  isSigned,
  mustBeEd25519,
  readCheckpoints,
  unlinked,
} from './checkpoint.ts'
import type { EntryRow } from './read.ts'
import { HEAD, NEXT_ENTRIES } from './statements.ts'

export interface VerifyAuditOptions {
  readonly pool: Pool
  /** Checkpoint file. Default: none; then a completely rewritten chain is not detected. */
  readonly checkpoints?: string | undefined
  /** Public key of the signatures; required with `checkpoints`. */
  readonly publicKey?: KeyObject | undefined
}

/**
 * The kind of a problem.
 *
 * - `altered`: an entry does not match its hash.
 * - `unlinked`: an entry does not contain the hash of the previous entry.
 * - `missing`: entries are missing.
 * - `head`: the last entry is not the last written entry.
 * - `signature`: a checkpoint has no valid signature of this key.
 * - `truncated`: the chain is shorter than at a checkpoint.
 * - `rewritten`: the hash of an entry differs from the hash in its checkpoint.
 * - `checkpoint_missing`: a checkpoint names an earlier checkpoint that is not in the file.
 */
export type AuditProblemKind =
  | 'altered'
  | 'unlinked'
  | 'missing'
  | 'head'
  | 'signature'
  | 'truncated'
  | 'rewritten'
  | 'checkpoint_missing'

export interface AuditProblem {
  readonly kind: AuditProblemKind
  /** The first entry with the problem. */
  readonly sequence: number
  readonly detail: string
}

export interface AuditVerdict {
  /** Number of valid entries before the first broken one. */
  readonly entries: number
  readonly checkpoints: number
  /** Epoch ms of the last checkpoint; undefined without checkpoints. */
  readonly lastCheckpointAt: number | undefined
  /** Empty if the audit log is unchanged. */
  readonly problems: readonly AuditProblem[]
}

/** 5,000 entries are a few MB. */
const PAGE = 5_000
/** One snapshot for all pages, independent of concurrent writes. */
const BEGIN = 'begin isolation level repeatable read read only'

/** Verifies the whole chain. Reports the first broken entry and every checkpoint that does not match. */
export async function verifyAudit(options: VerifyAuditOptions): Promise<AuditVerdict> {
  const checkpoints = await checkpointsOf(options)
  return inTransaction(options.pool, (run) => verdictOf(run, checkpoints), BEGIN)
}

interface CheckedCheckpoint extends Checkpoint {
  readonly isSigned: boolean
}

async function checkpointsOf(options: VerifyAuditOptions): Promise<readonly CheckedCheckpoint[]> {
  const { checkpoints: file, publicKey } = options
  if (file === undefined) return []
  if (publicKey === undefined) {
    throw new RedriveError('POLICY_INVALID', PUBLIC_KEY_MISSING)
  }
  mustBeEd25519(publicKey)
  const all = await readCheckpoints(file)
  // An empty file must not count as a successful verification.
  if (all.length === 0) {
    throw new RedriveError('CONFLICT', `The file "${file}" contains no checkpoint. Check its path.`)
  }
  return all.map((one) => ({ ...one, isSigned: isSigned(one, publicKey) }))
}

const PUBLIC_KEY_MISSING =
  'Checkpoints cannot be verified without the public key. Set publicKey (CLI: --public-key).'

async function verdictOf(
  run: RunSql,
  checkpoints: readonly CheckedCheckpoint[],
): Promise<AuditVerdict> {
  // Current hashes at the sequences of the checkpoints, so that pages need not stay in memory.
  const hashes = new Map<number, string | undefined>(
    checkpoints.map(({ sequence }) => [sequence, undefined]),
  )
  const chain = await walk(run, (sequence, hash) => {
    if (hashes.has(sequence)) hashes.set(sequence, hash)
  })
  const problems = checkpoints.flatMap((one) => problemOf(one, hashes.get(one.sequence), chain))
  return {
    entries: chain.length,
    checkpoints: checkpoints.length,
    lastCheckpointAt: checkpoints.at(-1)?.at,
    problems: [
      ...(chain.problem === undefined ? [] : [chain.problem]),
      ...problems,
      ...unlinked(checkpoints).map(missingBefore),
    ],
  }
}

const missingBefore = ({ sequence }: Checkpoint): AuditProblem => ({
  kind: 'checkpoint_missing',
  sequence,
  detail: `A checkpoint before that of entry ${sequence} is missing in the file.`,
})

interface WalkResult {
  /** The last valid sequence. */
  readonly length: number
  readonly problem: AuditProblem | undefined
}

async function walk(
  run: RunSql,
  onEntry: (sequence: number, hash: string) => void,
): Promise<WalkResult> {
  let length = 0
  let previous = GENESIS
  for (;;) {
    const rows = await run<EntryRow>(NEXT_ENTRIES, [length, PAGE])
    for (const row of rows) {
      const problem = brokenAt(row, length, previous)
      if (problem !== undefined) return { length, problem }
      length = Number(row.sequence)
      previous = row.hash
      onEntry(length, previous)
    }
    if (rows.length < PAGE) return { length, problem: await notTheHead(run, length, previous) }
  }
}

function brokenAt(row: EntryRow, length: number, previous: string): AuditProblem | undefined {
  const sequence = Number(row.sequence)
  const at = (kind: AuditProblemKind, detail: string) => ({ kind, sequence, detail })
  if (sequence !== length + 1) {
    return at('missing', `Entries ${length + 1} to ${sequence - 1} are missing.`)
  }
  if (row.previous !== previous) {
    return at('unlinked', `Entry ${sequence} does not contain the hash of entry ${length}.`)
  }
  const hash = hashOf({ ...row, sequence, at: Number(row.at_ms) }, previous)
  if (hash === row.hash) return undefined
  return at('altered', `Entry ${sequence} does not match its hash.`)
}

async function notTheHead(
  run: RunSql,
  length: number,
  hash: string,
): Promise<AuditProblem | undefined> {
  const [head] = await run<{ sequence: string; hash: string }>(HEAD)
  if (head !== undefined && Number(head.sequence) === length && head.hash === hash) return undefined
  const detail = `The last entry is ${length}, but the last written entry was ${head?.sequence ?? 'none'}.`
  return { kind: 'head', sequence: length, detail }
}

function problemOf(
  { sequence, hash, isSigned }: CheckedCheckpoint,
  found: string | undefined,
  { length, problem }: WalkResult,
): readonly AuditProblem[] {
  const at = (kind: AuditProblemKind, detail: string) => [{ kind, sequence, detail }]
  if (!isSigned) {
    return at('signature', `The checkpoint of entry ${sequence} is not signed with this key.`)
  }
  if (found === hash) return []
  if (found !== undefined) {
    return at('rewritten', `The hash of entry ${sequence} differs from the hash in its checkpoint.`)
  }
  // Entries after a broken one are unknown, and the broken one is already reported.
  if (problem !== undefined && problem.kind !== 'head') return []
  return at(
    'truncated',
    `The chain ends at entry ${length}, but a checkpoint covers entry ${sequence}.`,
  )
}
