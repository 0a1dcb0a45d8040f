import type { CheckHit, CheckResult } from '../finding.ts'
import type { RabbitmqFacts } from './facts.ts'
import { type QueueWithRole, placedIn, type Role } from './roles.ts'

/** Returns a function that runs `check` on each queue with one of these roles and collects the hits. */
export function onQueues(
  roles: readonly Role[],
  check: (placed: QueueWithRole, facts: RabbitmqFacts) => CheckResult,
): (facts: RabbitmqFacts) => readonly CheckHit[] {
  return (facts) =>
    placedIn(facts)
      .filter(({ role }) => roles.includes(role))
      .flatMap((placed) => {
        const found = check(placed, facts)
        if (found === undefined) return []
        const { name } = placed.queue
        const result = typeof found === 'string' ? { found, fill: {} } : found
        const { vhost } = facts
        const fill = { vhost, vhostPattern: only(vhost), pattern: only(name), ...result.fill }
        return [{ subject: name, found: result.found, fill }]
      })
}

/** Returns the pattern that matches only this name. */
export const only = (name: string): string => `^${name.replace(/[.*+?^$()[\]{}|\\]/g, '\\$&')}$`

export const isSet = (value: unknown): boolean => value !== undefined

export const isBounded = ({ setting }: QueueWithRole): boolean =>
  isSet(setting('max-length')) || isSet(setting('max-length-bytes'))

export const boundOf = ({ setting }: QueueWithRole): string =>
  isSet(setting('max-length'))
    ? `max-length ${text(setting('max-length'))}`
    : `max-length-bytes ${text(setting('max-length-bytes'))}`

/** Returns whether the version is older. An unknown version is not older than any. */
export function isBefore({ version }: RabbitmqFacts, major: number, minor: number): boolean {
  const [ofMajor = Number.NaN, ofMinor = 0] = (version ?? '?').split('.').map(Number)
  return ofMajor < major || (ofMajor === major && ofMinor < minor)
}

/** Formats a setting for users. */
export function text(value: unknown): string {
  if (value === undefined) return 'not set'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
