/**
 * Safe access to thrown values. Any value can be thrown: proxies, revoked proxies, objects whose getters
 * throw. All reads go through this file, so classification never fails because of the value.
 */

/** Reads a property without throwing. A property that cannot be read counts as absent. */
export function read(value: unknown, key: string): unknown {
  try {
    return (value as Readonly<Record<string, unknown>> | null | undefined)?.[key]
  } catch {
    return undefined
  }
}

export function readPath(value: unknown, path: readonly string[]): unknown {
  let found = value
  for (const key of path) found = read(found, key)
  return found
}

/** Returns the first name of each path, once. */
export function firstNames(paths: readonly (readonly string[])[]): readonly string[] {
  return [...new Set(paths.map(([first = '']) => first))]
}

export function readString(value: unknown, key: string): string | undefined {
  const found = read(value, key)
  return typeof found === 'string' ? found : undefined
}

/** Returns a text; an empty one when there is none. */
export const readText = (value: unknown, key: string): string => readString(value, key) ?? ''

/** Returns the first `max` items of an array, or none when the value is not an array. */
export function readItems(value: unknown, max: number): readonly unknown[] {
  return attempt(() => (Array.isArray(value) ? firstOf(value, max) : [])) ?? []
}

/** Does not use `slice`: a subclass of Array decides what that returns. */
function firstOf(items: readonly unknown[], max: number): readonly unknown[] {
  return Array.from({ length: Math.min(items.length, max) }, (_, index) => items[index])
}

/** Does `instanceof` without throwing. */
export function isA(value: unknown, type: abstract new (...args: never[]) => unknown): boolean {
  return attempt(() => value instanceof type) === true
}

/** Returns the result of the function, or `undefined` when it throws. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
