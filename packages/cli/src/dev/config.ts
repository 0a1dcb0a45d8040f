import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config, ConfigInput } from '@redrive/server'
import type { Io } from '../io.ts'
import { loaded } from '../server/config.ts'

/** The sources of a config, as users write them. */
export type Sources = ConfigInput['sources']

export interface DevConfig {
  readonly config: Config
  readonly file: string
}

/** Settings of the config that differ between starts. */
export interface DevSettings {
  /** URL of the database. It may have placeholders. */
  readonly database: string
  readonly port: number
  readonly sources: Sources
}

/**
 * Writes the config of the server and loads it. As a file, other commands can use it, too: `redrive config print`,
 * `token create`, `put-back`.
 */
export async function writeConfig(
  io: Io,
  folder: string,
  { database, port, sources }: DevSettings,
): Promise<DevConfig> {
  const input: ConfigInput = {
    database: { url: database },
    // Development authentication gives every client full access. The schema accepts it only on this machine.
    listen: `127.0.0.1:${port}`,
    auth: { development: {} },
    // The only user plans a replay and starts it.
    approval: 'anyone',
    migrate: true,
    sources,
    // A busy laptop needs longer for its first searches than a server.
    limits: { searchTimeout: '30s' },
    shutdown: { grace: '10s', readinessDelay: '0ms' },
  }
  const file = join(folder, 'redrive.config.json')
  writeFileSync(file, `${JSON.stringify(input, undefined, 2)}\n`, { mode: 0o600 })
  const { config } = await loaded(io, { config: file })
  return { config, file }
}
