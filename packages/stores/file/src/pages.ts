import type { StoredDeadLetter, StoreFilter, StorePage } from '@redrive/runtime'
import { writeCursor } from './cursor.ts'
import type { Entries } from './entries.ts'
import type { Ref } from './segment.ts'
import { type Position, positionOf, walk } from './walk.ts'

export type Read = (refs: readonly Ref[]) => Promise<readonly (StoredDeadLetter | undefined)[]>

/** Returns the oldest matching dead letters after the position. */
export async function pageOf(
  entries: Entries,
  read: Read,
  query: { readonly filter: StoreFilter; readonly limit: number },
  after: Position | undefined,
): Promise<StorePage> {
  const { filter, limit } = query
  const deadLetters: StoredDeadLetter[] = []
  let position = after
  for (;;) {
    const wanted = limit - deadLetters.length
    // One more than requested shows whether a next page exists.
    const refs = firstOf(entries, filter, wanted + 1, position)
    const last = refs.slice(0, wanted).at(-1)
    if (last === undefined) return { deadLetters, nextCursor: undefined }
    position = positionOf(last)
    for (const found of await read(refs.slice(0, wanted))) {
      if (found !== undefined && fits(filter, found)) deadLetters.push(found)
    }
    if (refs.length <= wanted) return { deadLetters, nextCursor: undefined }
    if (deadLetters.length === limit) return { deadLetters, nextCursor: writeCursor(position) }
  }
}

export function firstOf(
  entries: Entries,
  filter: StoreFilter,
  limit: number,
  after?: Position,
): readonly Ref[] {
  const refs: Ref[] = []
  for (const ref of walk(entries.segments.values(), filter, after)) {
    if (refs.push(ref) >= limit) break
  }
  return refs
}

/** Compares the texts, because the index compares only their hashes. */
function fits({ type, job }: StoreFilter, deadLetter: StoredDeadLetter): boolean {
  return (
    (type === undefined || type === deadLetter.event.type) &&
    (job === undefined || job === deadLetter.job)
  )
}
