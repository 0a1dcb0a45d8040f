import { NAME_MAX, storable } from '../text.ts'

/** 64 KiB: users do not read more of a body, and this bounds the time to parse it. */
const BYTES_MAX = 65_536
/** 64 levels: the database parses a preview recursively, too. */
const DEPTH_MAX = 64
/** 8 KiB for one text: users do not read longer ones. */
const TEXT_MAX = 8_192

/** Replaces a masked value. */
export const MASKED = '***'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses a body as JSON. Returns undefined if it is not JSON, too large or nested too deeply. */
export function parsedBody(bytes: Uint8Array): ParsedBody | undefined {
  if (bytes.length === 0 || bytes.length > BYTES_MAX) return undefined
  const { isDeep, isPlain } = scanned(bytes)
  if (isDeep) return undefined
  try {
    const text = utf8.decode(bytes)
    return { text, value: JSON.parse(text) as unknown, isPlain }
  } catch {
    // A body that is not JSON is valid. It only has no preview.
    return undefined
  }
}

export interface ParsedBody {
  readonly text: string
  /** Whether the database parses the text in the same way as JavaScript. */
  readonly isPlain: boolean
  readonly value: unknown
}

/**
 * Returns the preview for display and filters, as text for a jsonb column. Masks are JSON Pointers (RFC 6901);
 * `*` matches every item or key.
 */
export function previewOf(
  { text, value, isPlain }: ParsedBody,
  masks: readonly (readonly string[])[],
): string {
  // Most bodies need no change, so their text is used as it is.
  const isUnchanged = isPlain && masks.length === 0 && text.length <= TEXT_MAX
  return isUnchanged ? text : JSON.stringify(cleaned(value, masks))
}

/** Returns the values at these paths that can be searched: texts, numbers, true and false. */
export function extractedFrom(
  { value }: ParsedBody,
  paths: ReadonlyMap<string, readonly string[]>,
): readonly (readonly [name: string, value: string])[] {
  const found: (readonly [string, string])[] = []
  for (const [name, steps] of paths) {
    const one = valueAt(value, steps)
    const isSearchable = ['string', 'number', 'boolean'].includes(typeof one)
    if (isSearchable) found.push([name, storable(String(one), NAME_MAX)])
  }
  return found
}

function valueAt(value: unknown, steps: readonly string[]): unknown {
  let current = value
  for (const step of steps) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, step))
      return undefined
    current = (current as Readonly<Record<string, unknown>>)[step]
  }
  return current
}

export const isTooDeep = (bytes: Uint8Array): boolean => scanned(bytes).isDeep

/** 15 digits: JavaScript numbers keep at least this many exactly. */
const DIGITS_MAX = 15

/**
 * Scans a body before it is parsed. It counts brackets outside of texts. A plain body has no `\u` escapes, which
 * can represent characters that the database cannot store. It also has no exponents and no long numbers: the
 * database could reject them, or store them with more digits than JavaScript can compare.
 */
function scanned(bytes: Uint8Array): { readonly isDeep: boolean; readonly isPlain: boolean } {
  let depth = 0
  let digits = 0
  let isText = false
  let isPlain = true
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (isText) {
      if (byte === QUOTE) isText = false
      else if (byte === BACKSLASH && bytes[++at] === LETTER_U) isPlain = false
    } else if (byte >= ZERO && byte <= NINE) {
      if (++digits > DIGITS_MAX) isPlain = false
    } else if (byte !== POINT) {
      if (digits > 0 && (byte | LOWER_CASE) === LETTER_E) isPlain = false
      digits = 0
      if (byte === QUOTE) isText = true
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        if (++depth > DEPTH_MAX) return { isDeep: true, isPlain }
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--
    }
  }
  return { isDeep: false, isPlain }
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d,
]
const [ZERO, NINE, POINT, LETTER_U, LETTER_E, LOWER_CASE] = [0x30, 0x39, 0x2e, 0x75, 0x65, 0x20]

/** Returns a value that the database can store, with masked values replaced. */
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

/** Returns the steps of a JSON Pointer, or undefined if the text is not one. */
export function pointerSteps(pointer: string): readonly string[] | undefined {
  if (!pointer.startsWith('/')) return undefined
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
