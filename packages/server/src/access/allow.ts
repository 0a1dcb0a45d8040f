import { ACTIONS, type Action } from '@redrive/api/enums'
import type { Caller, Grant } from './caller.ts'

/** Returns whether a caller has a permission on a source. Without a matching grant the result is false. */
export function allows(caller: Caller, action: Action, source: string): boolean {
  if (caller.isAgent && action === 'approve') return false
  return grantsAllow(caller.grants, action, source)
}

/** Returns whether grants contain a permission on a source. */
export const grantsAllow = (all: readonly Grant[], action: Action, source: string): boolean =>
  all.some((grant) => grants(grant, action) && covers(grant, source))

/** Returns whether a caller has a permission on at least one source. */
export const allowsSome = (caller: Caller, action: Action): boolean =>
  caller.grants.some((grant) => grants(grant, action)) && !(caller.isAgent && action === 'approve')

/** Returns whether a caller has a permission on all sources, including future ones. */
export const allowsAll = (caller: Caller, action: Action): boolean =>
  caller.grants.some((grant) => grants(grant, action) && grant.sources.includes('*'))

export const allowedActions = (caller: Caller, source: string): readonly Action[] =>
  ACTIONS.filter((action) => allows(caller, action, source))

const grants = ({ actions }: Grant, action: Action) => actions.includes(action)
const covers = ({ sources }: Grant, source: string) => sources.some((one) => matches(one, source))

/**
 * Returns whether a name matches a pattern in which `*` matches any part. It does not use a regular expression,
 * because special characters in a pattern must not have a meaning or make it slow.
 */
export function matches(pattern: string, name: string): boolean {
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
