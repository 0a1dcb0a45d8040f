/** 256 bytes: enough to estimate how much of a payload is ASCII. */
const SAMPLE_BYTES = 256
/** 64 KB: a wrong estimate doubles the text, and PostgreSQL limits a text to 1 GB. */
const MAX_SAMPLED_BYTES = 65_536

/**
 * Selects the payload as text, whatever `bytea_output` is. Redrive must not change that setting with SET: behind a
 * pooler the next statement can run on another connection. JSON is mostly ASCII and is selected as it is, with a
 * backslash sequence for every other byte. A payload with many other bytes is selected as hexadecimal digits. The
 * formats are the two of PostgreSQL for bytea.
 */
export const PAYLOAD: string = `case
  when pg_catalog.octet_length(payload) <= ${MAX_SAMPLED_BYTES} and pg_catalog.octet_length(pg_catalog.encode(pg_catalog.substring(payload, 1, ${SAMPLE_BYTES}), 'escape'))
    <= 2 * least(pg_catalog.octet_length(payload), ${SAMPLE_BYTES})
  then pg_catalog.encode(payload, 'escape')
  else E'\\\\x' || pg_catalog.encode(payload, 'hex') end`

const BACKSLASH = 92
/** The code of the digit 0. */
const ZERO = 48

/** Returns the bytes of a payload that was selected with `PAYLOAD`. */
export function decodePayload(text: string): Buffer {
  if (text.startsWith('\\x')) return Buffer.from(text.slice(2), 'hex')
  return text.includes('\\') ? unescape(text) : Buffer.from(text, 'latin1')
}

/** Decodes `\\` to a backslash, and a backslash with three octal digits to a byte. */
function unescape(text: string): Buffer {
  const bytes = Buffer.allocUnsafe(text.length)
  let length = 0
  for (let at = 0; at < text.length; length += 1) {
    const isByte = text.charCodeAt(at) === BACKSLASH && text.charCodeAt(at + 1) !== BACKSLASH
    bytes[length] = isByte ? octal(text, at + 1) : text.charCodeAt(at)
    at += isByte ? 4 : text.charCodeAt(at) === BACKSLASH ? 2 : 1
  }
  return bytes.subarray(0, length)
}

const octal = (text: string, at: number): number =>
  (digit(text, at) << 6) | (digit(text, at + 1) << 3) | digit(text, at + 2)

const digit = (text: string, at: number): number => text.charCodeAt(at) - ZERO
