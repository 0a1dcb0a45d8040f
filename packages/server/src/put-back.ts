import type { PutBackOptions, PutBackResult } from '@redrive/catalog'
import { RedriveError } from '@redrive/core'
import { openSources } from './composition.ts'
import type { Config } from './config/schema.ts'
import { createParts } from './start/components.ts'
import { createLog, type Log } from './start/log.ts'
import { createPools } from './start/pools.ts'

/** Moves the open dead letters and set-aside messages of a source back to its dead-letter queue, with the config of the server. */
export async function putBackSource(
  config: Config,
  name: string,
  { log = createLog({ level: 'silent' }), ...options }: PutBackSourceOptions = {},
): Promise<PutBackResult> {
  const settings = Object.hasOwn(config.sources, name) ? config.sources[name] : undefined
  if (settings === undefined) throw unknownSource(name, Object.keys(config.sources))
  const pools = createPools(config, log)
  const [one] = openSources({ ...config, sources: { [name]: settings } }, pools)
  try {
    if (one === undefined) throw unknownSource(name, [])
    return await createParts(config, pools.own).catalog.putBack(one.source, { ...options, name })
  } finally {
    await one?.source.close()
    await pools.close()
  }
}

export type { PutBackResult } from '@redrive/catalog'

export interface PutBackSourceOptions extends Omit<PutBackOptions, 'name'> {
  /** Default: no log. */
  readonly log?: Log
}

/** Starts the ingest of a source again after it was put back. */
export async function startIngestOf(config: Config, name: string): Promise<void> {
  const pools = createPools(config, createLog({ level: 'silent' }))
  try {
    await createParts(config, pools.own).catalog.startIngest(name)
  } finally {
    await pools.close()
  }
}

const unknownSource = (name: string, known: readonly string[]) =>
  new RedriveError(
    'POLICY_INVALID',
    `The config has no source "${name}". Its sources: ${known.join(', ')}.`,
  )
