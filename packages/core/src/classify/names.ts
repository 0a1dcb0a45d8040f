/** The names of the properties of a thrown value: its own and inherited ones. */
export type Names = Pick<ReadonlySet<string>, 'has'>

/** A value of a cause chain, with the names of its properties. */
export interface Thrown {
  readonly error: unknown
  readonly names: Names
}

/** For values whose properties cannot be listed, or are as many as their items: each name is tried. */
const EVERY: Names = { has: () => true }

/** The names that a class gives its errors. A class has them before its first error is thrown. */
const inherited = new WeakMap<object, readonly string[]>()

/**
 * Returns the names of a value. An error has few of the hundred properties that classification knows, and reading one
 * that is absent searches the whole prototype chain. The tables therefore try only names that exist.
 */
export function namesOf(value: unknown): Names {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return EVERY
  try {
    if (Array.isArray(value)) return EVERY
    const names = new Set(inheritedNames(Object.getPrototypeOf(value) as object | null))
    for (const name of Object.getOwnPropertyNames(value)) names.add(name)
    return names
  } catch {
    return EVERY
  }
}

function inheritedNames(prototype: object | null): readonly string[] {
  if (prototype === null || prototype === Object.prototype) return []
  const known = inherited.get(prototype)
  if (known !== undefined) return known
  const above = inheritedNames(Object.getPrototypeOf(prototype) as object | null)
  const names = [...above, ...Object.getOwnPropertyNames(prototype)]
  inherited.set(prototype, names)
  return names
}

/** Returns true when one of the names exists. */
export function hasAny(names: Names, wanted: readonly string[]): boolean {
  for (const name of wanted) if (names.has(name)) return true
  return false
}
