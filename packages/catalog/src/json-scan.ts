/** 64 levels: the database parses a preview recursively, too. */
const DEPTH_MAX = 64

export const isTooDeep = (bytes: Uint8Array): boolean => scanned(bytes).isDeep

/** 15 digits: JavaScript numbers keep at least this many exactly. */
const DIGITS_MAX = 15

/**
 * Scans a body before it is parsed. It counts brackets outside of texts. A plain body has no `\u` escapes, which
 * can represent characters that the database cannot store. It also has no exponents and no long numbers: the
 * database could reject them, or store them with more digits than JavaScript can compare.
 */
export function scanned(bytes: Uint8Array): {
  readonly isDeep: boolean
  readonly isPlain: boolean
} {
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
