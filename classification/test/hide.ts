/** Returns the value without one property, at every depth. */
export function hide(value: unknown, key: string): unknown {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return value
  return new Proxy(value, {
    get: (target, name) => (name === key ? undefined : hide(Reflect.get(target, name), key)),
  })
}

/** Returns the value at a path such as `cause.code`. */
export function valueAt(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((found, key) => (found as Record<string, unknown> | undefined)?.[key], value)
}
