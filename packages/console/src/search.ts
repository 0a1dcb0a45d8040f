/** Reads the query of an address. All values are texts, so that addresses stay readable. */
export const parseSearch = (text: string): Record<string, string> =>
  Object.fromEntries(new URLSearchParams(text))

/** Writes the query of an address, without absent and empty values. */
export function stringifySearch(search: Readonly<Record<string, unknown>>): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(search)) {
    if (typeof value === 'string' && value !== '') params.set(name, value)
  }
  return params.size === 0 ? '' : `?${params.toString()}`
}

/** Returns the texts of a query that have one of these names. */
export function textsOf<K extends string>(
  search: Readonly<Record<string, unknown>>,
  ...names: readonly K[]
): { readonly [P in K]?: string } {
  const entries = names.flatMap((name) => {
    const text = textOf(search[name])
    return text === undefined ? [] : [[name, text]]
  })
  return Object.fromEntries(entries) as { readonly [P in K]?: string }
}

/** Returns the value if it is a text. */
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** Returns the value of a name if it is one of the allowed ones. */
export function oneOf<K extends string, T extends string>(
  search: Readonly<Record<string, unknown>>,
  name: K,
  allowed: readonly T[],
): { readonly [P in K]?: T } {
  const value = allowed.find((one) => one === search[name])
  return (value === undefined ? {} : { [name]: value }) as { readonly [P in K]?: T }
}
