/** Values of the wizard that survive a reload and a sign-in in this tab, and that are too long for an address. */
const PREFIX = 'redrive-wizard-'

export function keep(name: string, value: unknown): void {
  try {
    sessionStorage.setItem(PREFIX + name, JSON.stringify(value))
  } catch {
    // Storage is disabled or full: the value lasts as long as the page.
  }
}

export function kept(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + name) ?? 'null') ?? undefined
  } catch {
    // As above.
    return undefined
  }
}

export function forget(name: string): void {
  try {
    sessionStorage.removeItem(PREFIX + name)
  } catch {
    // As above.
  }
}

/** Removes all values. The next user of this browser must not see them. */
export function forgetAll(): void {
  try {
    const names = Object.keys(sessionStorage).filter((name) => name.startsWith(PREFIX))
    for (const name of names) sessionStorage.removeItem(name)
  } catch {
    // As above.
  }
}

/** Removes the values of another user who was signed in before in this tab. */
export function keepFor(person: string): void {
  const before = kept(PERSON)
  if (before !== undefined && before !== person) forgetAll()
  keep(PERSON, person)
}

const PERSON = 'person'

/** 20 ids fit into an address. */
const IN_ADDRESS_MAX = 20
const KEPT = 'kept-'

/** Returns ids for an address. Many ids are kept in the tab, and the address has their name. */
export function idsText(ids: readonly string[]): string {
  if (ids.length <= IN_ADDRESS_MAX) return ids.join()
  const name = KEPT + crypto.randomUUID()
  keep(name, ids)
  return name
}

/** Reads the ids of an address. Undefined: they were kept in another tab. */
export function readIds(text: string): readonly string[] | undefined {
  if (!text.startsWith(KEPT)) return text.split(',')
  const ids = kept(text)
  return Array.isArray(ids) ? ids.filter((id) => typeof id === 'string') : undefined
}
