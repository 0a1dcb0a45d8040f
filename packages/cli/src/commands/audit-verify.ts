import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Duration, parseDuration } from '@redrive/core'
import type { AuditVerdict } from '@redrive/server/internal'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { type ConfigOptions, loaded, refusedAsUsage } from '../server/config.ts'
import { green, red } from '../text/painted.ts'
import { counted, relative } from '../text/format.ts'

export interface VerifyOptions extends CommonOptions, ConfigOptions {
  /** Checkpoint file. Default: the one in the config. */
  readonly checkpoints?: string
  /** File with the public key, PEM. Default: derived from the signing key in the config. */
  readonly publicKey?: string
}

/**
 * Verifies the hash chain in the database. Does not use the API, because the check must also detect changes by
 * the server itself and by users with write access to its database.
 */
export async function verifyAuditCommand(io: Io, options: VerifyOptions): Promise<ExitCode> {
  const { config } = await loaded(io, options)
  const file = options.checkpoints ?? config.audit.checkpointFile
  const publicKey = keyOf(io, options.publicKey, config.audit.signingKey?.reveal())
  const checkpoints = file === undefined ? undefined : resolve(io.cwd, file)
  const [{ connectionOf, verifyAudit }, { default: pg }] = await Promise.all([
    import('@redrive/server/internal'),
    import('pg'),
  ])
  const connection = connectionOf(config)
  const pool = new pg.Pool({ ...connection, max: 1, application_name: 'redrive audit' })
  try {
    const verdict = await refusedAsUsage(() => verifyAudit({ pool, checkpoints, publicKey }))
    return shown(io, options, verdict, staleAfter(config.audit.checkpointInterval))
  } finally {
    await pool.end()
  }
}

function shown(io: Io, options: VerifyOptions, verdict: AuditVerdict, staleMs: number): ExitCode {
  const { entries, problems, lastCheckpointAt } = verdict
  const now = io.now()
  print(io, options, {
    json: verdict,
    lines: problems,
    human: (page) => {
      for (const { kind, sequence, detail } of problems)
        page.line`${red(kind)} at ${sequence}: ${detail}`
      const about = `${counted(entries, 'entry', 'entries')} and ${counted(verdict.checkpoints, 'checkpoint')}`
      if (problems.length === 0) page.line`${green('Verified, unchanged')}: ${about}.`
      else page.line`Checked ${about}.`
      if (lastCheckpointAt !== undefined)
        page.line`Last checkpoint: ${relative(now, lastCheckpointAt)}.`
    },
  })
  const isStale = lastCheckpointAt !== undefined && now - lastCheckpointAt > staleMs
  if (lastCheckpointAt === undefined) {
    say(
      io,
    )`Warning: without checkpoints, a completely rewritten chain looks valid. Set audit.checkpointFile and audit.signingKey, or use --checkpoints and --public-key.`
  } else if (isStale) {
    say(
      io,
    )`Warning: the last checkpoint is old. If the server was running since then, the end of the file and of the chain was removed.`
  }
  if (problems.length > 0) return EXIT.failure
  return isStale || lastCheckpointAt === undefined ? EXIT.warning : EXIT.ok
}

/** Returns the age at which the last checkpoint is too old: two intervals, at least two hours. */
const staleAfter = (interval: Duration) => 2 * Math.max(parseDuration(interval) ?? 0, HOUR_MS)
const HOUR_MS = 3_600_000

function keyOf(
  io: Io,
  file: string | undefined,
  signingKey: string | undefined,
): KeyObject | undefined {
  try {
    if (file !== undefined) return createPublicKey(readFileSync(resolve(io.cwd, file)))
    return signingKey === undefined ? undefined : createPublicKey(createPrivateKey(signingKey))
  } catch (cause) {
    throw new CommandError(
      EXIT.usage,
      `Cannot read the public key ${file ?? 'of audit.signingKey'}. Expected PEM.`,
      { cause },
    )
  }
}
