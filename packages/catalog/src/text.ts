/** Text that PostgreSQL can store: without NUL and halves of surrogate pairs, and no longer than that. */
export function storable(text: string, max: number): string {
  // Cut before cleaning, so that a hostile length costs nothing; cleaning never makes it longer.
  return text.slice(0, max).toWellFormed().replaceAll('\0', '\ufffd')
}

export function storableOrNull(text: string | undefined, max: number): string | null {
  return text === undefined ? null : storable(text, max)
}

/** 512 characters of a name: more than brokers allow, and an index entry of PostgreSQL still fits. */
export const NAME_MAX = 512
/** 1,000 characters of a message: twice what a failure keeps. */
export const MESSAGE_MAX = 1_000
