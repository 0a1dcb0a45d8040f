import type { Action } from '@redrive/api/enums'
import { allows } from '../access/allow.ts'
import type { Reading } from '../reading/reading.ts'
import type { AuditedAction } from './authorize.ts'
import type { OperationDeps } from './context.ts'
import { comparesHidden, type ValueFilter } from './masked-values.ts'
import { allowedSources } from './sources.ts'

/** A query that may filter by values of messages. */
interface ValueQuery extends ValueFilter {
  readonly sources?: readonly string[]
  readonly extracted?: unknown
}

/**
 * Returns the additional permissions for a query in a source. Filters by `json` and `extracted` reveal values of
 * payloads, so they require "view_payload". Filters by masked values and headers require "view_unmasked".
 */
export function valuesNeed(reading: Reading, source: string, query: ValueQuery): readonly Action[] {
  const isByPayload = query.json !== undefined || query.extracted !== undefined
  return [
    ...(isByPayload ? (['view_payload'] as const) : []),
    ...(comparesHidden(reading, source, query) ? (['view_unmasked'] as const) : []),
  ]
}

const comparesValues = ({ json, extracted, headers }: ValueQuery) =>
  [json, extracted, headers].some((one) => one !== undefined)

/**
 * Returns the allowed sources of a query. Rejects when only the permission to compare the values is missing, because
 * an empty result would look correct.
 */
export async function narrowedFor(
  { catalog, guard, reading }: OperationDeps,
  audited: AuditedAction,
  query: ValueQuery,
  ...actions: readonly Action[]
): Promise<readonly string[] | undefined> {
  const { caller } = audited
  const allowed = await allowedSources(catalog, caller, query.sources, ...actions)
  if (!comparesValues(query)) return allowed
  const names = allowed ?? (await catalog.sourceNames())
  const missing = new Set<Action>()
  const readable = names.filter((source) => {
    const denied = valuesNeed(reading, source, query).filter((one) => !allows(caller, one, source))
    for (const one of denied) missing.add(one)
    return denied.length === 0
  })
  if (readable.length === names.length) return allowed
  if (readable.length > 0) return readable
  const facts = { ...audited.facts, action: [...missing].join(', ') }
  throw await guard.denial({ ...audited, facts }, required([...missing]))
}

const required = (actions: readonly Action[]) =>
  `These filters by json, extracted or header require ${actions.map((one) => `"${one}"`).join(' and ')}. Remove them, or ask an administrator for a role with the permission.`
