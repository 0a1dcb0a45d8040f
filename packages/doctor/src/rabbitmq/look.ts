import type { Hit } from '../finding.ts'
import type { RabbitmqFacts } from './facts.ts'
import { type Placed, placedIn, type Role } from './roles.ts'

/** What was found on a queue, or undefined; with what the fix needs to know. */
type Found = string | undefined | { readonly found: string; readonly fill: Hit['fill'] & object }

/** A hit for each queue of one of these roles on which something is found. */
export function onQueues(
  roles: readonly Role[],
  look: (placed: Placed, facts: RabbitmqFacts) => Found,
): (facts: RabbitmqFacts) => readonly Hit[] {
  return (facts) =>
    placedIn(facts)
      .filter(({ role }) => roles.includes(role))
      .flatMap((placed) => {
        const found = look(placed, facts)
        if (found === undefined) return []
        const { name } = placed.queue
        const said = typeof found === 'string' ? { found, fill: {} } : found
        const { vhost } = facts
        const fill = { vhost, vhostPattern: only(vhost), pattern: only(name), ...said.fill }
        return [{ subject: name, found: said.found, fill }]
      })
}

/** The pattern that matches this name and no other. */
export const only = (name: string): string => `^${name.replace(/[.*+?^$()[\]{}|\\]/g, '\\$&')}$`

export const isSet = (value: unknown): boolean => value !== undefined

export const isBounded = ({ setting }: Placed): boolean =>
  isSet(setting('max-length')) || isSet(setting('max-length-bytes'))

export const boundOf = ({ setting }: Placed): string =>
  isSet(setting('max-length'))
    ? `max-length ${text(setting('max-length'))}`
    : `max-length-bytes ${text(setting('max-length-bytes'))}`

/** A version that is not known, or no number, is before nothing. */
export function isBefore({ version }: RabbitmqFacts, major: number, minor: number): boolean {
  const [ofMajor = Number.NaN, ofMinor = 0] = (version ?? '?').split('.').map(Number)
  return ofMajor < major || (ofMajor === major && ofMinor < minor)
}

/** A setting, for people. */
export function text(value: unknown): string {
  if (value === undefined) return 'not set'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
