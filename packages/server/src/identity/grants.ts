import { type Action, ROLES, type Role } from '@redrive/api'
import { matches } from '../access/allow.ts'
import type { Grant } from '../access/caller.ts'

/** Who may do what: some people and groups, some roles, some sources. */
export interface Binding {
  /** Subjects of the provider, compared as they are. */
  readonly people?: readonly string[] | undefined
  /** Groups of the provider, compared as they are. */
  readonly groups?: readonly string[] | undefined
  readonly roles: readonly Role[]
  /** Names of sources; `*` stands for any part of a name. */
  readonly sources: readonly string[]
}

/** What the roles allow, each action once. */
export const actionsOf = (roles: readonly Role[]): readonly Action[] => [
  ...new Set(roles.flatMap((role): readonly Action[] => ROLES[role])),
]

/** Made anew for every request, so that a change of bindings counts at once. */
export function grantsOf(
  bindings: readonly Binding[],
  subject: string,
  groups: readonly string[],
): readonly Grant[] {
  const isMeant = ({ people = [], groups: named = [] }: Binding) =>
    people.includes(subject) || named.some((group) => groups.includes(group))
  return bindings
    .filter(isMeant)
    .map(({ roles, sources }) => ({ actions: actionsOf(roles), sources }))
}

/**
 * What both allow. Of two patterns the narrower one counts; two that only overlap (`a*` and `*b`) give
 * nothing, which is the safe side.
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
 * Every name that fits `pattern` fits `wider` too. A `*` of the pattern can only be met by a `*` of the wider
 * one, because nothing else in it stands for `*`: so the pattern is matched like a name.
 */
const isWithin = (pattern: string, wider: string): boolean => matches(wider, pattern)

/** Of what a token is to be allowed, each that its maker may not do, as a sentence. */
export function notTheirs(owners: readonly Grant[], wanted: Grant): readonly string[] {
  const isTheirs = (action: Action, source: string) =>
    owners.some(
      (owner) =>
        owner.actions.includes(action) && owner.sources.some((wider) => isWithin(source, wider)),
    )
  return wanted.actions.flatMap((action) =>
    wanted.sources
      .filter((source) => !isTheirs(action, source))
      .map((source) => `You may not ${action} with ${source}, so no token of yours may.`),
  )
}
