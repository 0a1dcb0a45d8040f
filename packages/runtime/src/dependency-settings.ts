import { formatDuration, type Policy } from '@redrive/core'
import { isRecord, shown } from '@redrive/core/internal'

/** A consumer of a dependency, with the settings of the state that it shares. Undefined: it does not use that state. */
export interface DependencyUser extends Pick<Policy, 'breaker' | 'outage'> {
  readonly source: string
}

/**
 * Returns how the settings of two consumers differ, one clause each. Empty when they agree. The state of a
 * breaker is one count. Two ways to count would overwrite each other, and the breaker might never open.
 */
export function settingsDifferences(
  there: DependencyUser,
  here: DependencyUser,
): readonly string[] {
  return [
    ...differences('breaker', there.breaker, here.breaker),
    ...differences('outage', there.outage, here.outage),
  ]
}

function differences(path: string, there: unknown, here: unknown): readonly string[] {
  // Undefined: a guard that is off, or a field that only the other kind of `trip` has.
  if (there === here || there === undefined || here === undefined) return []
  if (isRecord(there) && isRecord(here)) {
    return Object.keys(there).flatMap((key) => differences(`${path}.${key}`, there[key], here[key]))
  }
  const name = path.replace(/Ms$/, '')
  const spell = (value: unknown) => (name === path ? shown(value) : formatDuration(Number(value)))
  return [`${name} is ${spell(there)} there and ${spell(here)} here`]
}
