import { createHash } from 'node:crypto'
import { FilterError, filterWords, formatFilterWord } from '@redrive/api/filter'

export type Facts = Readonly<Record<string, unknown>>

/** 48 KiB of facts: enough for a thousand ids, and less than an audit entry allows. */
const FACTS_MAX = 49_152
/** 4 KiB: shorter parts stay readable; longer ones are replaced by a hash. */
const PART_MAX = 4_096

/**
 * Limits the size of facts. If they are too large, long lists and texts are replaced by their length and the SHA-256
 * of their JSON. With the original request, a reader can check that it matches.
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

/** Returns the facts of moves between groups. Another call continues an incomplete one, with a separate entry. */
export const moveFacts = (done: {
  readonly moved: number
  readonly examined: number
  readonly nextCursor: string | undefined
}): Facts => ({
  moved: done.moved,
  examined: done.examined,
  isComplete: done.nextCursor === undefined,
})

/** Fields of a filter whose values are content of messages, and those of them that have a name before the value. */
const CONTENT: readonly string[] = ['text', 'key', 'lane', 'header', 'json', 'extracted']
const NAMED: readonly string[] = ['header', 'json', 'extracted']

/** Returns the text that replaces a value. */
export type SealValue = (value: string) => Promise<string>

/** Returns a filter with sealed values of messages, because readers of the audit log may not see these. */
export async function auditedFilter(seal: SealValue, text: string): Promise<string> {
  const words: string[] = []
  try {
    for (const { field = 'text', value } of filterWords(text)) {
      const shown = CONTENT.includes(field) ? await sealed(seal, field, value) : value
      words.push(formatFilterWord(field, shown))
    }
  } catch (error) {
    if (error instanceof FilterError) return 'invalid'
    throw error
  }
  return words.join(' ')
}

async function sealed(seal: SealValue, field: string, value: string): Promise<string> {
  const equals = NAMED.includes(field) ? value.indexOf('=') + 1 : 0
  return value.slice(0, equals) + (await seal(value.slice(equals)))
}

/** Returns the only item of a list; undefined if there are none or several. */
export const only = <T>(all: readonly T[] | undefined): T | undefined =>
  all?.length === 1 ? all[0] : undefined
