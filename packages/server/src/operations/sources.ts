import type { Action } from '@redrive/api/enums'
import type { Catalog } from '@redrive/catalog'
import { allows, allowsAll } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'

/**
 * Returns the requested sources on which the caller has all permissions. Undefined means all sources, including
 * future ones. An empty list means none.
 */
export async function allowedSources(
  catalog: Catalog,
  caller: Caller,
  requested: readonly string[] | undefined,
  ...actions: readonly Action[]
): Promise<readonly string[] | undefined> {
  const needed: readonly Action[] = ['view', ...actions]
  if (requested !== undefined)
    return requested.filter((source) => allowsEach(caller, needed, source))
  if (needed.every((action) => allowsAll(caller, action))) return undefined
  const names = await catalog.sourceNames()
  return names.filter((source) => allowsEach(caller, needed, source))
}

const allowsEach = (caller: Caller, actions: readonly Action[], source: string) =>
  actions.every((action) => allows(caller, action, source))
