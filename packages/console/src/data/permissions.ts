import type { Action } from '@redrive/api/enums'
import type { Me } from './queries.ts'

/** Returns whether the caller has a permission on any source. Without it, the console hides the action. */
export const canSomewhere = ({ grants }: Pick<Me, 'grants'>, action: Action): boolean =>
  grants.some(({ actions }) => actions.includes(action))

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
