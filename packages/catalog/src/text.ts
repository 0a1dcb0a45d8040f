/** Has NUL or halves of pairs, whole pairs included: nearly no text does, and the look is cheap. */
// oxlint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\ud800-\udfff]/

/** Text that PostgreSQL can store: without NUL and halves of surrogate pairs, and no longer than that. */
export function storable(text: string, max: number): string {
  // Cut before cleaning, so that a hostile length costs nothing; cleaning never makes it longer.
  const cut = text.length > max ? text.slice(0, max) : text
  return UNSTORABLE.test(cut) ? cut.toWellFormed().replaceAll('\0', '\ufffd') : cut
}

export function storableOrNull(text: string | undefined, max: number): string | null {
  return text === undefined ? null : storable(text, max)
}

/** 512 characters of a name: more than brokers allow, and an index entry of PostgreSQL still fits. */
export const NAME_MAX = 512
/** 1,000 characters of a message: twice what a failure keeps. */
export const MESSAGE_MAX = 1_000
