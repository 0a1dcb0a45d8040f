import type { Action } from '@redrive/api'
import type { Deed } from './guard.ts'
import type { DeskParts } from './parts.ts'
import { narrowed } from './sources.ts'

/** What a query asks for, as far as it is about values of bodies. */
interface Valued {
  readonly sources?: readonly string[]
  readonly json?: unknown
  readonly extracted?: unknown
}

/**
 * What a query needs besides. Who may not see bodies must not find out about them by asking for values either,
 * and what was extracted is a value of a body.
 */
export const valuesNeed = ({ json, extracted }: Valued): readonly Action[] =>
  json === undefined && extracted === undefined ? [] : ['payload']

/** As `narrowed`. Who only lacks the right to ask for values is told so: an empty answer would be believed. */
export async function narrowedFor(
  { catalog, guard }: DeskParts,
  deed: Deed,
  query: Valued,
  ...actions: readonly Action[]
): Promise<readonly string[] | undefined> {
  const { caller } = deed
  const needed = valuesNeed(query)
  const sources = await narrowed(catalog, caller, query.sources, ...actions, ...needed)
  if (sources?.length !== 0) return sources
  const others = await narrowed(catalog, caller, query.sources, ...actions)
  if (others?.length === 0) return others
  throw await guard.denial({ ...deed, facts: { ...deed.facts, action: needed[0] } }, BLIND)
}

const BLIND =
  'Values of bodies (json, extracted) are only for who may see bodies, and you may not payload in any of these sources. Leave them out, or ask an administrator for a role that may.'
