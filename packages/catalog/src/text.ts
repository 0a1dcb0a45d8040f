/** Matches NUL and surrogates, also in valid pairs. Few texts have them, and this first check is cheap. */
// oxlint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\ud800-\udfff]/

/** Returns text that PostgreSQL can store: without NUL and lone surrogates, and at most `max` characters. */
export function storable(text: string, max: number): string {
  // Cut before cleaning, so that a very long hostile text costs nothing. Cleaning never makes a text longer.
  const cut = text.length > max ? text.slice(0, max) : text
  return UNSTORABLE.test(cut) ? cut.toWellFormed().replaceAll('\0', '\ufffd') : cut
}

export function storableOrNull(text: string | undefined, max: number): string | null {
  return text === undefined ? null : storable(text, max)
}

/** Maximum length of a name: more than brokers allow, and short enough for an index entry of PostgreSQL. */
export const NAME_MAX = 512
/** Maximum length of a message: twice what a failure record keeps. */
export const MESSAGE_MAX = 1_000
