/**
 * Text of peers is hostile: names, keys, headers, errors and bodies may hold anything. On a terminal a
 * control character moves the cursor, sets the title or hides a line; a bidi or zero-width character makes
 * a line read as something else. They are shown, and never sent.
 *
 * C0, DEL and C1 (Cc), bidi, zero-width, tags and other invisible formats (Cf), lone surrogates (Cs), and
 * the two separators that some terminals and editors treat as line ends (Zl, Zp).
 */
const HOSTILE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** One line of text: also its line ends and tabs are shown. */
export const safe = (text: string): string => text.replace(HOSTILE, shownAs)

/** Text of several lines, each of them safe. */
export const safeLines = (text: string): readonly string[] => text.split(/\r?\n/).map(safe)

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

const shownAs = (character: string): string => SHORT[character] ?? escaped(character)

/** As JSON writes it, so that both kinds of output show the same. */
function escaped(character: string): string {
  let text = ''
  for (let at = 0; at < character.length; at += 1) {
    text += `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`
  }
  return text
}

/** JSON that a terminal can show: the same document, with more of its characters escaped. */
export function safeJson(value: unknown, indent?: number): string {
  // Outside of strings there is nothing of these but the line ends of the indent.
  return JSON.stringify(value ?? null, undefined, indent).replace(HOSTILE, (character) =>
    character === '\n' ? character : escaped(character),
  )
}
