import type { Action } from '@redrive/api/enums'
import type { AuditedAction } from './authorize.ts'
import type { OperationDeps } from './context.ts'
import { allowedSources } from './sources.ts'

/** A query that may filter by values of payloads. */
interface PayloadQuery {
  readonly sources?: readonly string[]
  readonly json?: unknown
  readonly extracted?: unknown
}

/**
 * Returns the additional permissions for a query. Filters by `json` and `extracted` reveal values of payloads, so
 * they require "view_payload".
 */
export const valuesNeed = ({ json, extracted }: PayloadQuery): readonly Action[] =>
  json === undefined && extracted === undefined ? [] : ['view_payload']

/**
 * Returns the allowed sources of a query. Rejects when only the permission "view_payload" is missing, because an empty
 * result would look correct.
 */
export async function narrowedFor(
  { catalog, guard }: OperationDeps,
  audited: AuditedAction,
  query: PayloadQuery,
  ...actions: readonly Action[]
): Promise<readonly string[] | undefined> {
  const { caller } = audited
  const needed = valuesNeed(query)
  const sources = await allowedSources(catalog, caller, query.sources, ...actions, ...needed)
  if (sources?.length !== 0) return sources
  const others = await allowedSources(catalog, caller, query.sources, ...actions)
  if (others?.length === 0) return others
  throw await guard.denial(
    { ...audited, facts: { ...audited.facts, action: needed[0] } },
    PAYLOAD_REQUIRED,
  )
}

const PAYLOAD_REQUIRED =
  'Filtering by json or extracted requires permission "view_payload". Remove these filters, or ask an administrator for a role with it.'
