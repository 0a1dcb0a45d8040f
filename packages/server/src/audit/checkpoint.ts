import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { z } from 'zod'
import { runOn } from '../database.ts'
import { GENESIS } from './chain.ts'
import { HASH_OF_ENTRY, HEAD } from './statements.ts'

/** A signed state of the chain. It is stored where users with write access to the database cannot change it. */
export interface Checkpoint {
  readonly sequence: number
  readonly hash: string
  /** Epoch ms of the database clock. */
  readonly at: number
  /** SHA-256 of the signature of an earlier checkpoint, or 64 zeros. Undefined in files of earlier releases. */
  readonly previous?: string | undefined
  /** Ed25519 over `signedText`, base64. */
  readonly signature: string
}

const checkpoint = z.object({
  sequence: z.int(),
  hash: z.string(),
  at: z.number(),
  previous: z.string().optional(),
  signature: z.base64(),
})

/** Returns the signed bytes: JSON in UTF-8. Version 2 contains a link to an earlier checkpoint. */
const signedText = ({ sequence, hash, at, previous }: Omit<Checkpoint, 'signature'>): Buffer =>
  Buffer.from(
    JSON.stringify(
      previous === undefined
        ? ['redrive audit checkpoint 1', sequence, hash, at]
        : ['redrive audit checkpoint 2', sequence, hash, at, previous],
    ),
  )

/** Returns what the next checkpoint contains as `previous`. */
const linkTo = (checkpoint: Checkpoint | undefined): string =>
  checkpoint === undefined
    ? GENESIS
    : createHash('sha256').update(checkpoint.signature).digest('hex')

/**
 * Returns the checkpoints whose earlier checkpoint is not in the file: it was removed. Several processes may append to
 * the file, so the earlier one need not be the line before.
 */
export function unlinked(checkpoints: readonly Checkpoint[]): readonly Checkpoint[] {
  const known = new Set([GENESIS])
  return checkpoints.filter((one) => {
    const isLinked = one.previous === undefined || known.has(one.previous)
    known.add(linkTo(one))
    return !isLinked
  })
}

export function isSigned(checkpoint: Checkpoint, publicKey: KeyObject): boolean {
  return verify(
    null,
    signedText(checkpoint),
    publicKey,
    Buffer.from(checkpoint.signature, 'base64'),
  )
}

export interface CheckpointOptions {
  readonly pool: Pool
  /** Ed25519 key. */
  readonly privateKey: KeyObject
  /** File with one JSON document per line, append-only. Keep it where the database owner cannot write. */
  readonly file: string
}

/** 1 h: without new entries, a checkpoint still shows that nothing was removed since. */
export const QUIET_MS = 3_600_000

/**
 * Appends a checkpoint to the file, unless the chain is unchanged and the last one is not older than an hour. Rejects
 * when the chain does not contain the last checkpoint, because a new one would hide the manipulation.
 */
export async function writeCheckpoint(options: CheckpointOptions): Promise<Checkpoint | undefined> {
  const { pool, privateKey, file } = options
  mustBeEd25519(privateKey)
  const last = (await readCheckpoints(file)).at(-1)
  if (last !== undefined) await requireCheckpoint(pool, last, createPublicKey(privateKey), file)
  const head = await headOf(pool)
  const isQuiet = head.sequence === (last?.sequence ?? 0)
  if (isQuiet && head.at - (last?.at ?? head.at) < QUIET_MS) return undefined
  const next = { ...head, previous: linkTo(last) }
  const written = {
    ...next,
    signature: sign(null, signedText(next), privateKey).toString('base64'),
  }
  await appendLine(file, JSON.stringify(written))
  return written
}

/** Returns the checkpoints of the file, or none if it does not exist. Rejects when a line is not a checkpoint. */
export async function readCheckpoints(file: string): Promise<readonly Checkpoint[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line, index) => parseCheckpoint(line, `${file}:${index + 1}`))
}

function parseCheckpoint(line: string, where: string): Checkpoint {
  try {
    return checkpoint.parse(JSON.parse(line))
  } catch (cause) {
    const sentence = `${where} is not a valid checkpoint. Restore the file from a backup. If there is none, remove the line and document the reason.`
    throw new RedriveError('CONFLICT', sentence, { cause })
  }
}

async function requireCheckpoint(
  pool: Pool,
  last: Checkpoint,
  publicKey: KeyObject,
  file: string,
): Promise<void> {
  const [row] = await runOn(pool)<{ hash: string }>(HASH_OF_ENTRY, [last.sequence])
  if (row?.hash === last.hash && isSigned(last, publicKey)) return
  throw new RedriveError(
    'CONFLICT',
    `The audit log does not contain the last checkpoint of "${file}" (entry ${last.sequence}). It was truncated, rewritten or restored, or the key has changed. Run \`redrive audit verify\`. After an intended restore, move the file away and keep it.`,
  )
}

interface Head {
  readonly sequence: number
  readonly hash: string
  readonly at: number
}

async function headOf(pool: Pool): Promise<Head> {
  const [row] = await runOn(pool)<{ sequence: string; hash: string; at: string }>(HEAD)
  if (row === undefined) throw new RedriveError('CONFLICT', AUDIT_HEAD_MISSING)
  return { sequence: Number(row.sequence), hash: row.hash, at: Number(row.at) }
}

const AUDIT_HEAD_MISSING =
  'The table redrive_server.audit_head is empty. Restore the database, then run `redrive audit verify`.'

/** Rejects a key of another type, because its signatures would have another format. */
export function mustBeEd25519(key: KeyObject): void {
  if (key.asymmetricKeyType === 'ed25519') return
  throw new RedriveError(
    'POLICY_INVALID',
    'The key of the audit log is not an Ed25519 key. Create one: openssl genpkey -algorithm ed25519',
  )
}

/** Appends a line and syncs it to disk. It uses one write, because other processes may append to the file. */
async function appendLine(file: string, line: string): Promise<void> {
  const handle = await open(file, 'a', 0o640).catch((cause: Error) => {
    const sentence = `Cannot write a checkpoint of the audit log: ${cause.message}. Check that the folder exists and that the server can write to it.`
    throw new RedriveError('UNREACHABLE', sentence, { cause })
  })
  try {
    await handle.appendFile(`${line}\n`)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

export interface Checkpoints {
  /** Writes a last checkpoint. */
  stop(): Promise<void>
}

/** Writes a checkpoint now, one per interval and one at the end. A failure is reported; the next interval retries. */
export async function startCheckpoints(
  options: CheckpointOptions & {
    readonly everyMs: number
    readonly onError: (error: unknown) => void
  },
): Promise<Checkpoints> {
  const { everyMs, onError } = options
  // Rejects the start when the chain was manipulated or the file cannot be written.
  await writeCheckpoint(options)
  let last: Promise<unknown> = Promise.resolve()
  const writeNext = () => {
    last = last.then(() => writeCheckpoint(options)).catch(onError)
    return last
  }
  const timer = setInterval(() => void writeNext(), everyMs)
  return {
    async stop() {
      clearInterval(timer)
      await writeNext()
    },
  }
}
