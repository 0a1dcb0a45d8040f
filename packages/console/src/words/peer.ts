/**
 * Returns text of a producer with control, bidirectional and invisible characters as escapes. Such characters could
 * reorder the words of the page or hide a part of them.
 */
export const peerText = (text: string): string =>
  text.replace(HIDDEN, (char) => {
    const code = (char.codePointAt(0) ?? 0).toString(16)
    return code.length <= 2 ? `\\x${code.padStart(2, '0')}` : `\\u{${code}}`
  })

/** Controls except line feed and tab, format characters (bidirectional, zero width), lone surrogates, line separators. */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Returns the text with at most this many characters, cut between two of them. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text
  const cut = text.slice(0, most)
  return `${/[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut}…`
}
