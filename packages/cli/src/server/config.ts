import { isRedriveError } from '@redrive/core'
import type { LoadedConfig } from '@redrive/server'
import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'

export interface ConfigOptions {
  /** Name of the file. Default: `REDRIVE_CONFIG`, then a `redrive.config.*` in the working directory. */
  readonly config?: string
}

/** Loads the server config. The error lists all problems together. */
export async function loaded(io: Io, { config: file }: ConfigOptions): Promise<LoadedConfig> {
  const { loadConfig } = await import('@redrive/server')
  const location = { env: io.env, cwd: io.cwd }
  return refusedAsUsage(() => loadConfig(file === undefined ? location : { ...location, file }))
}

/** Reports invalid input as a usage error. Nothing was changed in this case. */
export async function refusedAsUsage<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isRedriveError(error, 'POLICY_INVALID')) throw error
    throw new CommandError(EXIT.usage, error.message, { cause: error })
  }
}
