import type { Action } from '@redrive/api'
import type { Catalog } from '@redrive/catalog'
import { allows, allowsAll } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'

/**
 * The sources with which the caller may do all of this, of those that were asked for. Undefined: all there
 * are, those to come included. Empty: none, and so there is nothing to answer.
 */
export async function narrowed(
  catalog: Catalog,
  caller: Caller,
  asked: readonly string[] | undefined,
  ...actions: readonly Action[]
): Promise<readonly string[] | undefined> {
  const needed: readonly Action[] = ['view', ...actions]
  if (asked !== undefined) return asked.filter((source) => allowsEach(caller, needed, source))
  if (needed.every((action) => allowsAll(caller, action))) return undefined
  const names = await catalog.sourceNames()
  return names.filter((source) => allowsEach(caller, needed, source))
}

const allowsEach = (caller: Caller, actions: readonly Action[], source: string) =>
  actions.every((action) => allows(caller, action, source))
