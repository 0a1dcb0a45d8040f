import { ACTIONS, type Action } from '@redrive/api'
import type { Caller, Grant } from './caller.ts'

/** The one place where it is decided who may do what. Everything that no grant names is forbidden. */
export function allows(caller: Caller, action: Action, source: string): boolean {
  if (caller.isAgent && action === 'approve') return false
  return caller.grants.some((grant) => grants(grant, action) && covers(grant, source))
}

/** With some source at least: nothing that anyone asks for can be answered without it. */
export const allowsSome = (caller: Caller, action: Action): boolean =>
  caller.grants.some((grant) => grants(grant, action)) && !(caller.isAgent && action === 'approve')

/** What concerns all sources, those to come included. */
export const allowsAll = (caller: Caller, action: Action): boolean =>
  caller.grants.some((grant) => grants(grant, action) && grant.sources.includes('*'))

export const allowedActions = (caller: Caller, source: string): readonly Action[] =>
  ACTIONS.filter((action) => allows(caller, action, source))

const grants = ({ actions }: Grant, action: Action) => actions.includes(action)
const covers = ({ sources }: Grant, source: string) => sources.some((one) => matches(one, source))

/** `*` stands for any part; without a regular expression, so that no name can be slow or mean more. */
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
