/** The same without what is undefined: left out and said to be nothing are different things to others. */
export function given<T extends object>(
  options: T,
): { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
} {
  const said = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(said) as ReturnType<typeof given<T>>
}
