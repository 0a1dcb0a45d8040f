import type { Action } from '@redrive/api/enums'
import type { Me } from './queries.ts'

/** Returns whether a name matches a pattern in which `*` matches any part. */
function matches(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return first === name
  if (!name.startsWith(first)) return false
  const last = rest.pop() ?? ''
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}

/** Returns whether the caller has a permission on a source. The server decides; this only hides and disables. */
export const can = ({ grants }: Pick<Me, 'grants'>, action: Action, source: string): boolean =>
  grants.some(
    ({ actions, sources }) =>
      actions.includes(action) && sources.some((pattern) => matches(pattern, source)),
  )

/** Returns whether the caller has a permission on any source. Without it, the console hides the action. */
export const canSomewhere = ({ grants }: Pick<Me, 'grants'>, action: Action): boolean =>
  grants.some(({ actions }) => actions.includes(action))

/** Returns whether the caller has a permission on all sources, including future ones. */
export const canEverywhere = ({ grants }: Pick<Me, 'grants'>, action: Action): boolean =>
  grants.some(({ actions, sources }) => actions.includes(action) && sources.includes('*'))

/** Returns why the caller cannot act on a source; undefined when they can. */
export const refusal = (
  me: Pick<Me, 'grants'>,
  action: Action,
  source: string,
): string | undefined =>
  can(me, action, source) ? undefined : `Permission ${action} is required on ${source}.`

/** Returns a short name of the caller's roles for the sidebar. */
export function roleText({ grants, via }: Pick<Me, 'grants' | 'via'>): string {
  if (via === 'development') return 'development'
  const actions = new Set(grants.flatMap((grant) => grant.actions))
  return ROLE_SIGNS.find(([action]) => actions.has(action))?.[1] ?? 'no permissions'
}

/** The first permission that the caller has names the role. */
const ROLE_SIGNS: readonly (readonly [Action, string])[] = [
  ['configure', 'admin'],
  ['replay', 'operator'],
  ['approve', 'approver'],
  ['view', 'viewer'],
]

/** Returns a person's name. The API has only subjects, such as `https://id.example#ada`. */
export const personName = (subject: string, me?: Pick<Me, 'person' | 'name'>): string =>
  subject === me?.person ? me.name : subject.replace(/^.*[#/]/, '')
