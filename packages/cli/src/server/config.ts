import { isRedriveError } from '@redrive/core'
import type { Loaded } from '@redrive/server'
import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'

export interface ConfigOptions {
  /** Name of the file. Default: `REDRIVE_CONFIG`, then a `redrive.config.*` in the working directory. */
  readonly config?: string
}

/** The config of the server. Everything that is wrong with it is told at once. */
export async function loaded(io: Io, { config: file }: ConfigOptions): Promise<Loaded> {
  const { loadConfig } = await import('@redrive/server')
  const where = { env: io.env, cwd: io.cwd }
  return refusedAsUsage(() => loadConfig(file === undefined ? where : { ...where, file }))
}

/** What someone wrote is wrong, and nothing was done: that is a matter of usage. */
export async function refusedAsUsage<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isRedriveError(error, 'POLICY_INVALID')) throw error
    throw new CommandError(EXIT.usage, error.message, { cause: error })
  }
}
