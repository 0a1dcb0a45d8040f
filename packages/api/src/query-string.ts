import type { z } from 'zod'

/** Lists as the same name several times, everything else as text. */
export function toQueryString(query: Readonly<Record<string, unknown>>): string {
  const text = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) text.append(name, String(one))
  }
  return text.size === 0 ? '' : `?${text.toString()}`
}

/** Undoes it: the schema says what each text was. What does not fit stays a text, for the schema to refuse. */
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

/** What it is, whether it may be absent or not. */
function kindOf(schema: unknown): string {
  const { def } = (schema ?? {}) as { readonly def?: { type: string; innerType?: unknown } }
  if (def === undefined) return 'unknown'
  return def.innerType === undefined ? def.type : kindOf(def.innerType)
}
