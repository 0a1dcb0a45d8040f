import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { type ConfigOptions, loaded, refusedAsUsage } from '../server/config.ts'

export interface ServeCommandOptions extends CommonOptions, ConfigOptions {
  /** Roles: api, ingest, replay, watch. One value may contain several, separated by commas. Default: all. */
  readonly role?: readonly string[]
  /** Default 'info'. */
  readonly logLevel?: string
}

/** 1 s to write the last log lines. Then the process exits, even with open connections. */
const FLUSH_MS = 1_000

/** Runs the server until a signal stops it. Its log goes to stdout as JSON Lines. */
export async function serveCommand(io: Io, options: ServeCommandOptions): Promise<ExitCode> {
  const [{ createLog }, { parseServeRoles, serveUntil }] = await Promise.all([
    import('@redrive/server'),
    import('@redrive/server/internal'),
  ])
  const roles = await refusedAsUsage(async () => parseServeRoles(options.role))
  const { logLevel: level = 'info' } = options
  const to = { write: (line: string) => io.stdout.write(line) }
  const log = await refusedAsUsage(async () => createLog({ level, to }))
  const { config } = await loaded(io, options)
  // The server continues when stdout closes, because the log collector may restart.
  io.outliveReader()
  const { isClean } = await serveUntil(config, { roles, log, signal: io.signal })
  if (isClean) return EXIT.ok
  // Unfinished work would keep the process alive beyond its grace period.
  setTimeout(() => process.exit(EXIT.failure), FLUSH_MS).unref()
  return EXIT.failure
}
