import type { KeyObject } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction, type Run } from '../database.ts'
import { GENESIS, hashOf } from './chain.ts'
import { type Checkpoint, isSigned, mustBeEd25519, readCheckpoints } from './checkpoint.ts'
import { ENTRY, type EntryRow } from './read.ts'

export interface VerifyAuditOptions {
  readonly pool: Pool
  /** The file of checkpoints. Default: none, and then a chain that was rewritten as a whole looks right. */
  readonly checkpoints?: string | undefined
  /** Of the key that signed them; needed with `checkpoints`. */
  readonly publicKey?: KeyObject | undefined
}

/** - `altered`: an entry is not the one its hash was made of.
 * - `unlinked`: an entry does not follow the one before.
 * - `missing`: entries are not there.
 * - `head`: the chain does not end where it was last written.
 * - `signature`: a checkpoint was not signed with that key.
 * - `truncated`: the chain is shorter than a checkpoint says.
 * - `rewritten`: it is not the chain that a checkpoint was made of.
 */
export type AuditProblemKind =
  | 'altered'
  | 'unlinked'
  | 'missing'
  | 'head'
  | 'signature'
  | 'truncated'
  | 'rewritten'

export interface AuditProblem {
  readonly kind: AuditProblemKind
  /** The entry at which it shows. */
  readonly sequence: number
  readonly detail: string
}

export interface AuditVerdict {
  /** Entries that were looked at, up to the first that is broken. */
  readonly entries: number
  readonly checkpoints: number
  /** None: all is as it was written. */
  readonly problems: readonly AuditProblem[]
}

/** 5,000 entries are a few MB. */
const PAGE = 5_000
/** One moment for all pages, whatever is written meanwhile. */
const BEGIN = 'begin isolation level repeatable read read only'

/** Walks the whole chain and tells the first entry that is broken, and every checkpoint that it breaks. */
export async function verifyAudit(options: VerifyAuditOptions): Promise<AuditVerdict> {
  const checkpoints = await checkpointsOf(options)
  return inTransaction(options.pool, (run) => verdictOf(run, checkpoints), BEGIN)
}

interface Signed extends Checkpoint {
  readonly isSigned: boolean
}

async function checkpointsOf(options: VerifyAuditOptions): Promise<readonly Signed[]> {
  const { checkpoints: file, publicKey } = options
  if (file === undefined) return []
  if (publicKey === undefined) {
    throw new RedriveError('POLICY_INVALID', 'Checkpoints prove nothing without the public key.')
  }
  mustBeEd25519(publicKey)
  const all = await readCheckpoints(file)
  // No checkpoint where some are looked for is not the same as all being right.
  if (all.length === 0) throw new RedriveError('CONFLICT', `There is no checkpoint in ${file}.`)
  return all.map((one) => ({ ...one, isSigned: isSigned(one, publicKey) }))
}

async function verdictOf(run: Run, checkpoints: readonly Signed[]): Promise<AuditVerdict> {
  // Hashes as they are now, at the places that checkpoints name: no page has to be kept.
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
    problems: [...(chain.problem === undefined ? [] : [chain.problem]), ...problems],
  }
}

interface Walked {
  /** The last sequence that is right. */
  readonly length: number
  readonly problem: AuditProblem | undefined
}

async function walk(run: Run, see: (sequence: number, hash: string) => void): Promise<Walked> {
  let length = 0
  let previous = GENESIS
  for (;;) {
    const rows = await run<EntryRow>(
      `select ${ENTRY} from redrive_server.audit where sequence > $1 order by sequence limit ${PAGE}`,
      [length],
    )
    for (const row of rows) {
      const problem = brokenAt(row, length, previous)
      if (problem !== undefined) return { length, problem }
      length = Number(row.sequence)
      previous = row.hash
      see(length, previous)
    }
    if (rows.length < PAGE) return { length, problem: await notTheHead(run, length, previous) }
  }
}

function brokenAt(row: EntryRow, length: number, previous: string): AuditProblem | undefined {
  const sequence = Number(row.sequence)
  const at = (kind: AuditProblemKind, detail: string) => ({ kind, sequence, detail })
  if (sequence !== length + 1) {
    return at('missing', `Entries ${length + 1} to ${sequence - 1} are not there.`)
  }
  if (row.previous !== previous) {
    return at('unlinked', `Entry ${sequence} does not follow entry ${length} as it is now.`)
  }
  const hash = hashOf({ ...row, sequence, at: Number(row.at_ms) }, previous)
  if (hash === row.hash) return undefined
  return at('altered', `Entry ${sequence} is not what was written.`)
}

async function notTheHead(
  run: Run,
  length: number,
  hash: string,
): Promise<AuditProblem | undefined> {
  const [head] = await run<{ sequence: string; hash: string }>(
    `select sequence, encode(hash, 'hex') as hash from redrive_server.audit_head`,
  )
  if (head !== undefined && Number(head.sequence) === length && head.hash === hash) return undefined
  const detail = `The last entry is ${length}, but ${head?.sequence ?? 'none'} was the last to be written.`
  return { kind: 'head', sequence: length, detail }
}

function problemOf(
  { sequence, hash, isSigned }: Signed,
  found: string | undefined,
  { length, problem }: Walked,
): readonly AuditProblem[] {
  const at = (kind: AuditProblemKind, detail: string) => [{ kind, sequence, detail }]
  if (!isSigned) {
    return at('signature', `The checkpoint of entry ${sequence} was not signed with that key.`)
  }
  if (found === hash) return []
  if (found !== undefined) {
    return at('rewritten', `Entry ${sequence} is not the one that the checkpoint was made of.`)
  }
  // Beyond an entry that is broken nothing is known, and that entry is told already.
  if (problem !== undefined && problem.kind !== 'head') return []
  return at('truncated', `The chain ends at ${length}; the checkpoint has seen entry ${sequence}.`)
}
