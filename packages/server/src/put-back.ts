import type { PutBackOptions, PutBackResult } from '@redrive/catalog'
import { isRedriveError, RedriveError } from '@redrive/core'
import { isRefused } from './access/problem-error.ts'
import type { WriteAudit } from './audit/entry.ts'
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
    const { audit, catalog } = createParts(config, pools.own)
    return await recorded(
      audit.write,
      { operation: 'putBack', source: name },
      () => catalog.putBack(one.source, { ...options, name }),
      ({ total, done, refused }) => ({ total, done, refused: refused.length }),
    )
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
    const { audit, catalog } = createParts(config, pools.own)
    await recorded(audit.write, { operation: 'startIngest', source: name }, () =>
      catalog.startIngest(name),
    )
  } finally {
    await pools.close()
  }
}

/**
 * Writes an audit entry before and after a change that a person with the config makes. If the first one cannot be
 * written, nothing is changed.
 */
async function recorded<T>(
  write: WriteAudit,
  { operation, source }: { readonly operation: string; readonly source: string },
  work: () => Promise<T>,
  factsOf: (result: T) => Readonly<Record<string, unknown>> = () => ({}),
): Promise<T> {
  const entry = { caller: undefined, via: 'config', operation, source } as const
  const by = 'administrator with the config'
  await write({ ...entry, outcome: 'requested', facts: { by } })
  let result: T
  try {
    result = await work()
  } catch (error) {
    const because = isRedriveError(error) ? error.code : 'internal'
    const outcome = isRefused(error) ? 'refused' : 'failed'
    await write({ ...entry, outcome, facts: { by, because } })
    throw error
  }
  await write({ ...entry, outcome: 'done', facts: { by, ...factsOf(result) } })
  return result
}

const unknownSource = (name: string, known: readonly string[]) =>
  new RedriveError(
    'POLICY_INVALID',
    `The config has no source "${name}". Its sources: ${known.join(', ')}.`,
  )
