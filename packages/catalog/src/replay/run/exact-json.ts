import { isTooDeep } from '../../json-scan.ts'

/** An error for a body that cannot be parsed as JSON without loss. */
export class NotExact extends Error {}

/** 8 MiB: it bounds the time to parse, and users do not repair larger bodies. */
const BYTES_MAX = 8_388_608
/** The number of digits that a JavaScript number always keeps. */
const EXACT_DIGITS = 15

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Parses a body as JSON. Throws if writing it again would change other values: a number with more digits than
 * JavaScript keeps would become a different number.
 */
export function exactJson(bytes: Uint8Array): unknown {
  if (bytes.length > BYTES_MAX) throw new NotExact(`the body has more than ${BYTES_MAX} bytes`)
  if (isTooDeep(bytes)) throw new NotExact('the body is nested too deeply')
  let text: string
  try {
    text = utf8.decode(bytes)
    return (JSON.parse as Parse)(text, exactly)
  } catch (error) {
    if (error instanceof NotExact) throw error
    throw new NotExact('the body is not JSON')
  }
}

/** `JSON.parse` with the source text of each value, which is missing in the TypeScript types. */
type Parse = (text: string, reviver: typeof exactly) => unknown

function exactly(_: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value
  const digits = source
    .replace(/[eE].*$/, '')
    .replace(/[-.]/g, '')
    .replace(/^0+/, '')
  if (digits.length <= EXACT_DIGITS) return value
  // The number is not named, because a reader of the reason may lack permission to see the body.
  throw new NotExact('the body has a number with more digits than JavaScript can keep')
}
