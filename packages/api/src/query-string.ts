import type { z } from 'zod'

/** Serializes a query. A list repeats its name for each item. */
export function toQueryString(query: Readonly<Record<string, unknown>>): string {
  const text = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) text.append(name, String(one))
  }
  return text.size === 0 ? '' : `?${text.toString()}`
}

/** Parses a query with the types of the schema. An invalid value stays a text, which the schema rejects later. */
export function fromQueryString(
  schema: z.ZodObject,
  raw: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(raw).map(([name, value]) => {
      const read = READERS[kindOf(schema.shape[name])]
      return [name, read === undefined ? value : read(value)]
    }),
  )
}

const READERS: Readonly<Record<string, (value: unknown) => unknown>> = {
  number: (value) => (isNumeral(value) ? Number(value) : value),
  boolean: (value) => (value === 'true' ? true : value === 'false' ? false : value),
  array: (value): unknown => (Array.isArray(value) ? value : [value]),
}

const isNumeral = (value: unknown) => typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value)

/** Returns the type of a schema without `optional`. */
function kindOf(schema: unknown): string {
  const { def } = (schema ?? {}) as { readonly def?: { type: string; innerType?: unknown } }
  if (def === undefined) return 'unknown'
  return def.innerType === undefined ? def.type : kindOf(def.innerType)
}
