import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { z } from 'zod'
import { runOn } from '../database.ts'

/** What the chain was at some moment, in a place that who can change the database cannot change. */
export interface Checkpoint {
  readonly sequence: number
  readonly hash: string
  /** Epoch ms on the clock of the database. */
  readonly at: number
  /** Ed25519 over `signedText`, base64. */
  readonly signature: string
}

const checkpoint = z.object({
  sequence: z.int(),
  hash: z.string(),
  at: z.number(),
  signature: z.base64(),
})

/** Version 1: what is signed, in UTF-8. */
const signedText = ({ sequence, hash, at }: Omit<Checkpoint, 'signature'>): Buffer =>
  Buffer.from(JSON.stringify(['redrive audit checkpoint 1', sequence, hash, at]))

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
  /** Ed25519. */
  readonly privateKey: KeyObject
  /** One JSON document in each line; only ever added to. Keep it where the database's owner cannot write. */
  readonly file: string
}

/**
 * Adds a checkpoint to the file, unless nothing was written since the last one. A chain that no longer has
 * the last checkpoint gets no new one: that would cover what was done to it.
 */
export async function writeCheckpoint(options: CheckpointOptions): Promise<Checkpoint | undefined> {
  const { pool, privateKey, file } = options
  mustBeEd25519(privateKey)
  const last = (await readCheckpoints(file)).at(-1)
  if (last !== undefined) await mustHave(pool, last, createPublicKey(privateKey), file)
  const head = await headOf(pool)
  if (head.sequence === (last?.sequence ?? 0)) return undefined
  const signature = sign(null, signedText(head), privateKey).toString('base64')
  const written = { ...head, signature }
  await appendLine(file, JSON.stringify(written))
  return written
}

/** All lines of the file; none when there is no file yet. Rejects at a line that is no checkpoint. */
export async function readCheckpoints(file: string): Promise<readonly Checkpoint[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line, index) => parsed(line, `${file}:${index + 1}`))
}

function parsed(line: string, where: string): Checkpoint {
  try {
    return checkpoint.parse(JSON.parse(line))
  } catch (cause) {
    const sentence = `${where} is no checkpoint. Restore the file from a copy; only if it cannot be, take the line out and write down why.`
    throw new RedriveError('CONFLICT', sentence, { cause })
  }
}

async function mustHave(
  pool: Pool,
  last: Checkpoint,
  publicKey: KeyObject,
  file: string,
): Promise<void> {
  const text = `select encode(hash, 'hex') as hash from redrive_server.audit where sequence = $1`
  const [row] = await runOn(pool)<{ hash: string }>(text, [last.sequence])
  if (row?.hash === last.hash && isSigned(last, publicKey)) return
  throw new RedriveError(
    'CONFLICT',
    `The audit does not have the last checkpoint of ${file} (entry ${last.sequence}): it was cut, rewritten or restored, or the key is another one. Run \`redrive audit verify\`; after a restore that was meant, move the file away and keep it.`,
  )
}

interface Head {
  readonly sequence: number
  readonly hash: string
  readonly at: number
}

async function headOf(pool: Pool): Promise<Head> {
  const text = `select sequence, encode(hash, 'hex') as hash,
  (extract(epoch from clock_timestamp()) * 1000)::bigint as at from redrive_server.audit_head`
  const [row] = await runOn(pool)<{ sequence: string; hash: string; at: string }>(text)
  if (row === undefined) throw new RedriveError('CONFLICT', 'The audit has lost its head.')
  return { sequence: Number(row.sequence), hash: row.hash, at: Number(row.at) }
}

/** Another kind of key would sign as well, in a way that nobody expects. */
export function mustBeEd25519(key: KeyObject): void {
  if (key.asymmetricKeyType === 'ed25519') return
  throw new RedriveError(
    'POLICY_INVALID',
    'The key of the audit is not of the kind Ed25519. Make one with: openssl genpkey -algorithm ed25519',
  )
}

/** On disk before it is said to be. A whole line in one write: others may add to the file as well. */
async function appendLine(file: string, line: string): Promise<void> {
  const handle = await open(file, 'a', 0o640).catch((cause: Error) => {
    const sentence = `No checkpoint of the audit can be written: ${cause.message}. The folder must be there, and the server must be allowed to write in it.`
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
  /** Writes a last one. */
  stop(): Promise<void>
}

/** One now, one every so often, and one at the end. What goes wrong is told and tried again next time. */
export async function startCheckpoints(
  options: CheckpointOptions & {
    readonly everyMs: number
    readonly onError: (error: unknown) => void
  },
): Promise<Checkpoints> {
  const { everyMs, onError } = options
  // A start with a chain that was tampered with, or a file that cannot be written, is refused.
  await writeCheckpoint(options)
  let last: Promise<unknown> = Promise.resolve()
  const again = () => {
    last = last.then(() => writeCheckpoint(options)).catch(onError)
    return last
  }
  const timer = setInterval(() => void again(), everyMs)
  return {
    async stop() {
      clearInterval(timer)
      await again()
    },
  }
}
