import type { StoredDeadLetter, StoreFilter, StorePage } from '@redrive/runtime'
import { writeCursor } from './cursor.ts'
import type { Entries } from './entries.ts'
import type { Ref } from './segment.ts'
import { type Position, positionOf, walk } from './walk.ts'

export type Read = (refs: readonly Ref[]) => Promise<readonly (StoredDeadLetter | undefined)[]>

/** The oldest that fit, behind the position. */
export async function pageOf(
  entries: Entries,
  read: Read,
  query: { readonly filter: StoreFilter; readonly most: number },
  after: Position | undefined,
): Promise<StorePage> {
  const { filter, most } = query
  const deadLetters: StoredDeadLetter[] = []
  let position = after
  for (;;) {
    const wanted = most - deadLetters.length
    // One more than wanted says whether there is a next page.
    const refs = firstOf(entries, filter, wanted + 1, position)
    const last = refs.slice(0, wanted).at(-1)
    if (last === undefined) return { deadLetters, next: undefined }
    position = positionOf(last)
    for (const found of await read(refs.slice(0, wanted))) {
      if (found !== undefined && fits(filter, found)) deadLetters.push(found)
    }
    if (refs.length <= wanted) return { deadLetters, next: undefined }
    if (deadLetters.length === most) return { deadLetters, next: writeCursor(position) }
  }
}

export function firstOf(
  entries: Entries,
  filter: StoreFilter,
  most: number,
  after?: Position,
): readonly Ref[] {
  const refs: Ref[] = []
  for (const ref of walk(entries.segments.values(), filter, after)) {
    if (refs.push(ref) >= most) break
  }
  return refs
}

/** The index compares hashes; this compares what they stand for. */
function fits({ type, job }: StoreFilter, deadLetter: StoredDeadLetter): boolean {
  return (
    (type === undefined || type === deadLetter.event.type) &&
    (job === undefined || job === deadLetter.job)
  )
}
