import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { type ConfigOptions, loaded, refusedAsUsage } from '../server/config.ts'

export interface ServeCommandOptions extends CommonOptions, ConfigOptions {
  /** Some of api, ingest, replay, watch; several in one text with commas. Default: all. */
  readonly role?: readonly string[]
  /** Default 'info'. */
  readonly logLevel?: string
}

/** 1 s for what is written last; then the process ends, whatever is still open in it. */
const LAST_WORDS_MS = 1_000

/** Runs the server until the process is asked to end. What it says while it runs is its data: JSON lines. */
export async function serveCommand(io: Io, options: ServeCommandOptions): Promise<ExitCode> {
  const { createLog, parseServeRoles, serveUntil } = await import('@redrive/server')
  const roles = await refusedAsUsage(async () => parseServeRoles(options.role))
  const { logLevel: level = 'info' } = options
  const to = { write: (line: string) => io.stdout.write(line) }
  const log = await refusedAsUsage(async () => createLog({ level, to }))
  const { config } = await loaded(io, options)
  // A log that is gone is no reason to leave work: what collects it may be restarted.
  io.outliveReader()
  const { isClean } = await serveUntil(config, { roles, log, signal: io.signal })
  if (isClean) return EXIT.ok
  // What did not end in time would keep the process alive beyond its grace period.
  setTimeout(() => process.exit(EXIT.failure), LAST_WORDS_MS).unref()
  return EXIT.failure
}
