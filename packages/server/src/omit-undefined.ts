/** Returns a copy without undefined properties. Some libraries treat an undefined property as a value. */
export function omitUndefined<T extends object>(
  options: T,
): { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
} {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as ReturnType<typeof omitUndefined<T>>
}
