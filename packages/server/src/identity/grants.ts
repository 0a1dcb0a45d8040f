import { type Action, ROLES, type Role } from '@redrive/api/enums'
import { matches } from '../access/allow.ts'
import type { Grant } from '../access/caller.ts'

/** Roles of users and groups on sources. */
export interface Binding {
  /** Subjects (`sub` claims) of users, compared exactly. */
  readonly people?: readonly string[] | undefined
  /** Groups of the provider, compared exactly. */
  readonly groups?: readonly string[] | undefined
  readonly roles: readonly Role[]
  /** Names of sources; `*` matches any part of a name. */
  readonly sources: readonly string[]
}

/** Returns the permissions of the roles, each once. */
export const actionsOf = (roles: readonly Role[]): readonly Action[] => [
  ...new Set(roles.flatMap((role): readonly Action[] => ROLES[role])),
]

/** Returns the grants of a user. It runs for every request, so that changes of the bindings apply immediately. */
export function grantsOf(
  bindings: readonly Binding[],
  subject: string,
  groups: readonly string[],
): readonly Grant[] {
  const applies = ({ people = [], groups: bound = [] }: Binding) =>
    people.includes(subject) || bound.some((group) => groups.includes(group))
  return bindings
    .filter(applies)
    .map(({ roles, sources }) => ({ actions: actionsOf(roles), sources }))
}

/**
 * Returns the intersection of two grants. Of two patterns it uses the narrower one. For patterns that only overlap
 * (`a*` and `*b`) the result is empty, which is the safe choice.
 */
export function meet(owners: readonly Grant[], tokens: Grant): readonly Grant[] {
  return owners
    .map((owner) => ({
      actions: tokens.actions.filter((action) => owner.actions.includes(action)),
      sources: narrower(owner.sources, tokens.sources),
    }))
    .filter(({ actions, sources }) => actions.length > 0 && sources.length > 0)
}

function narrower(some: readonly string[], others: readonly string[]): readonly string[] {
  const pairs = some.flatMap((one) => others.map((other) => [one, other] as const))
  const found = pairs.flatMap(([one, other]) => {
    if (isWithin(other, one)) return [other]
    return isWithin(one, other) ? [one] : []
  })
  return [...new Set(found)]
}

/**
 * Returns whether every name that matches `pattern` also matches `wider`. The pattern is matched like a name: only
 * a `*` of `wider` can match its `*`.
 */
const isWithin = (pattern: string, wider: string): boolean => matches(wider, pattern)

/** Returns a sentence for each requested permission that the creator of a token lacks. */
export function notTheirs(owners: readonly Grant[], requested: Grant): readonly string[] {
  const isOwned = (action: Action, source: string) =>
    owners.some(
      (owner) =>
        owner.actions.includes(action) && owner.sources.some((wider) => isWithin(source, wider)),
    )
  return requested.actions.flatMap((action) =>
    requested.sources
      .filter((source) => !isOwned(action, source))
      .map((source) => `You do not have permission "${action}" on source "${source}".`),
  )
}
