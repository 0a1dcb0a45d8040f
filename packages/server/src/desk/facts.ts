import { createHash } from 'node:crypto'

export type Facts = Readonly<Record<string, unknown>>

/** 48 KiB of facts: a thousand ids, and less than an entry of the audit takes. */
const FACTS_MAX = 49_152
/** 4 KiB: what is shorter says more than its hash, and there are few parts in a request. */
const PART_MAX = 4_096

/**
 * As they are when they fit. Else lists and texts that are long are told by how many there were and the
 * SHA-256 of their JSON: whoever has the request can show that it was this one.
 */
export function bounded(facts: Facts): Facts {
  const { length } = JSON.stringify(facts)
  if (length <= FACTS_MAX) return facts
  const short = shortened(facts)
  return JSON.stringify(short).length <= FACTS_MAX ? short : { omitted: `${length} characters` }
}

const shortened = (facts: object): Facts =>
  Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, shortPart(value)]))

function shortPart(value: unknown): unknown {
  const json = JSON.stringify(value) ?? ''
  if (json.length <= PART_MAX) return value
  const sha256 = createHash('sha256').update(json).digest('hex')
  if (Array.isArray(value)) return { count: value.length, sha256 }
  return typeof value === 'object' && value !== null
    ? shortened(value)
    : { characters: json.length, sha256 }
}

/** The only one; undefined: there are several, or none. */
export const only = <T>(all: readonly T[] | undefined): T | undefined =>
  all?.length === 1 ? all[0] : undefined
