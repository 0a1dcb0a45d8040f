import { isTooDeep } from '../ingest/preview.ts'

/** A body that cannot be read as JSON without losing something. */
export class NotExact extends Error {}

/** 8 MiB: parsing has to end, and a larger body is not one that people repair. */
const BYTES_MAX = 8_388_608
/** What a number of JavaScript always holds. */
const EXACT_DIGITS = 15

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * A body as JSON, when writing it again would not change what nobody asked to change: a number with more
 * digits than JavaScript holds would come out as another one.
 */
export function exactJson(bytes: Uint8Array): unknown {
  if (bytes.length > BYTES_MAX) throw new NotExact(`its body has more than ${BYTES_MAX} bytes`)
  if (isTooDeep(bytes)) throw new NotExact('its body is nested too deep')
  let text: string
  try {
    text = utf8.decode(bytes)
    return (JSON.parse as Parse)(text, exactly)
  } catch (error) {
    if (error instanceof NotExact) throw error
    throw new NotExact('its body is not JSON')
  }
}

/** With the source text of each value, which the types do not know yet. */
type Parse = (text: string, reviver: typeof exactly) => unknown

function exactly(_: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value
  const digits = source
    .replace(/[eE].*$/, '')
    .replace(/[-.]/g, '')
    .replace(/^0+/, '')
  if (digits.length <= EXACT_DIGITS) return value
  // Which one is not said: who reads the reason may not see the body.
  throw new NotExact('a number in it cannot be kept exactly')
}
