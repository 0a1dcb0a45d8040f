/**
 * Characters that are escaped before they reach a terminal. Names, keys, headers, errors and bodies come from
 * other programs and may contain anything. A control character can move the cursor, set the title or hide a
 * line. A bidi or zero-width character can change how a line reads.
 *
 * The classes are: C0, DEL and C1 (Cc); bidi, zero-width, tags and other invisible formats (Cf); lone
 * surrogates (Cs). Zl and Zp are separators that some terminals and editors treat as line ends.
 */
const HOSTILE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Escapes a text for one line, including line ends and tabs. */
export const safe = (text: string): string => text.replace(HOSTILE, shownAs)

/** Splits a text into lines and escapes each line. */
export const safeLines = (text: string): readonly string[] => text.split(/\r?\n/).map(safe)

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

const shownAs = (character: string): string => SHORT[character] ?? escaped(character)

/** Escapes a character as JSON does, so that text and JSON output show the same. */
function escaped(character: string): string {
  let text = ''
  for (let at = 0; at < character.length; at += 1) {
    text += `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`
  }
  return text
}

/** Returns JSON that is safe for a terminal: the same document with more characters escaped. */
export function safeJson(value: unknown, indent?: number): string {
  // Outside of strings, only the line ends of the indentation match.
  return JSON.stringify(value ?? null, undefined, indent).replace(HOSTILE, (character) =>
    character === '\n' ? character : escaped(character),
  )
}
