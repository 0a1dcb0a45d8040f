/**
 * Anything can be thrown: proxies, revoked proxies, objects whose getters throw. Every look at a
 * thrown value goes through here, so classification never fails because of what it classifies.
 */

/** Property access that cannot throw; what cannot be read is absent. */
export function read(value: unknown, key: string): unknown {
  try {
    return (value as Readonly<Record<string, unknown>> | null | undefined)?.[key]
  } catch {
    return undefined
  }
}

export function readPath(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(read, value)
}

export function readString(value: unknown, key: string): string | undefined {
  const found = read(value, key)
  return typeof found === 'string' ? found : undefined
}

/** The first `max` items of an array; nothing when it is not one. */
export function readItems(value: unknown, max: number): readonly unknown[] {
  return attempt(() => (Array.isArray(value) ? firstOf(value, max) : [])) ?? []
}

/** Not `slice`: a subclass of Array decides what that returns. */
function firstOf(items: readonly unknown[], max: number): readonly unknown[] {
  return Array.from({ length: Math.min(items.length, max) }, (_, index) => items[index])
}

/** `instanceof` that cannot throw. */
export function isA(value: unknown, type: abstract new (...args: never[]) => unknown): boolean {
  return attempt(() => value instanceof type) === true
}

/** What the function returns, or `undefined` when it throws. */
export function attempt<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}
