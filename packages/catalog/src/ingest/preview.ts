import { NAME_MAX, storable } from '../text.ts'

/** 64 KiB of body: what a person reads; a preview is parsed, and parsing has to end. */
const BYTES_MAX = 65_536
/** 64 levels: the database parses a preview as well, by recursion. */
const DEPTH_MAX = 64
/** 8 KiB of one text: a longer one is not read by people. */
const TEXT_MAX = 8_192

/** Instead of a value that was masked. */
export const MASKED = '***'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** A body as JSON; undefined when it is none, or too large or too deep to be looked at. */
export function parsedBody(bytes: Uint8Array): ParsedBody | undefined {
  if (bytes.length === 0 || bytes.length > BYTES_MAX || isTooDeep(bytes)) return undefined
  try {
    return { value: JSON.parse(utf8.decode(bytes)) as unknown }
  } catch {
    // No JSON: nothing to show, and nothing wrong.
    return undefined
  }
}

export interface ParsedBody {
  readonly value: unknown
}

/**
 * For people and filters, as text for a jsonb column. Masks are JSON Pointers (RFC 6901); `*` stands for
 * every item or key.
 */
export function previewOf({ value }: ParsedBody, masks: readonly (readonly string[])[]): string {
  return JSON.stringify(cleaned(value, masks))
}

/** The values at these places that can be looked up: texts, numbers, true and false. */
export function extractedFrom(
  { value }: ParsedBody,
  places: ReadonlyMap<string, readonly string[]>,
): readonly (readonly [name: string, value: string])[] {
  const found: (readonly [string, string])[] = []
  for (const [name, steps] of places) {
    const one = valueAt(value, steps)
    const isFit = ['string', 'number', 'boolean'].includes(typeof one)
    if (isFit) found.push([name, storable(String(one), NAME_MAX)])
  }
  return found
}

function valueAt(value: unknown, steps: readonly string[]): unknown {
  let here = value
  for (const step of steps) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, step)) return undefined
    here = (here as Readonly<Record<string, unknown>>)[step]
  }
  return here
}

/** Counts brackets outside of texts, before anything is parsed. */
function isTooDeep(bytes: Uint8Array): boolean {
  let depth = 0
  let isText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (isText) {
      if (byte === BACKSLASH) at++
      else if (byte === QUOTE) isText = false
    } else if (byte === QUOTE) isText = true
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      if (++depth > DEPTH_MAX) return true
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--
  }
  return false
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d,
]

/** What the database can store, with the masked values replaced. */
function cleaned(value: unknown, masks: readonly (readonly string[])[]): unknown {
  if (masks.some(({ length }) => length === 0)) return MASKED
  if (typeof value === 'string') return storable(value, TEXT_MAX)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one, at) => cleaned(one, below(masks, String(at))))
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      storable(name, TEXT_MAX),
      cleaned(one, below(masks, name)),
    ]),
  )
}

const below = (masks: readonly (readonly string[])[], step: string) =>
  masks.filter(([first]) => first === step || first === '*').map(([, ...rest]) => rest)

/** The steps of a JSON Pointer; undefined when it is none. */
export function pointerSteps(pointer: string): readonly string[] | undefined {
  if (!pointer.startsWith('/')) return undefined
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
