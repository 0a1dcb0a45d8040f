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
  if (bytes.length === 0 || bytes.length > BYTES_MAX) return undefined
  const { isDeep, isPlain } = scanned(bytes)
  if (isDeep) return undefined
  try {
    const text = utf8.decode(bytes)
    return { text, value: JSON.parse(text) as unknown, isPlain }
  } catch {
    // No JSON: nothing to show, and nothing wrong.
    return undefined
  }
}

export interface ParsedBody {
  readonly text: string
  /** The database reads the text as we do. */
  readonly isPlain: boolean
  readonly value: unknown
}

/**
 * For people and filters, as text for a jsonb column. Masks are JSON Pointers (RFC 6901); `*` stands for
 * every item or key.
 */
export function previewOf(
  { text, value, isPlain }: ParsedBody,
  masks: readonly (readonly string[])[],
): string {
  // Most need no change, and are not written anew.
  const isFit = isPlain && masks.length === 0 && text.length <= TEXT_MAX
  return isFit ? text : JSON.stringify(cleaned(value, masks))
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

export const isTooDeep = (bytes: Uint8Array): boolean => scanned(bytes).isDeep

/** 15 digits: the most that our numbers keep exactly. */
const DIGITS_MAX = 15

/**
 * Looks before anything is parsed. Counts brackets outside of texts. Plain is what has no escaped
 * characters, which may be ones that the database cannot store, and no exponents or long numbers, which
 * it may refuse or keep more exactly than we can ask for them.
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
