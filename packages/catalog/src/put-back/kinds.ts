import type { DrainedDeadLetter } from '@redrive/runtime'
import type { RunSql } from '../database.ts'
import type { PayloadKeys } from '../encryption.ts'
import { readDrained } from '../read/payload.ts'
import { readContent } from '../set-aside/read.ts'
import {
  COUNT_UNSETTLED,
  COUNT_UNSETTLED_SET_ASIDE,
  DELETE_PUT_BACK,
  DELETE_PUT_BACK_SET_ASIDE,
  OPEN_AFTER,
  OPEN_SET_ASIDE_AFTER,
} from './statements.ts'

/** The id of a message, and the number of bytes of its body. */
export interface Size {
  readonly id: string
  readonly bytes: number
}

/** A kind of message that can be put back. */
export interface Kind {
  /** Selects open rows of a source after an id. */
  readonly openAfter: string
  /** Deletes rows that the broker has stored, and returns how many. */
  readonly remove: string
  readonly countUnsettled: string
  /** Returns the messages as received from the broker, by id. Ids whose message is not complete are left out. */
  readonly read: (
    run: RunSql,
    keys: PayloadKeys | undefined,
    sizes: readonly Size[],
  ) => Promise<ReadonlyMap<string, DrainedDeadLetter>>
}

/** Dead letters first, then set-aside messages. */
export const KINDS: readonly Kind[] = [
  {
    openAfter: OPEN_AFTER,
    remove: DELETE_PUT_BACK,
    countUnsettled: COUNT_UNSETTLED,
    read: readDrained,
  },
  {
    openAfter: OPEN_SET_ASIDE_AFTER,
    remove: DELETE_PUT_BACK_SET_ASIDE,
    countUnsettled: COUNT_UNSETTLED_SET_ASIDE,
    read: readSetAside,
  },
]

async function readSetAside(
  run: RunSql,
  keys: PayloadKeys | undefined,
  sizes: readonly Size[],
): Promise<ReadonlyMap<string, DrainedDeadLetter>> {
  const found = new Map<string, DrainedDeadLetter>()
  for (const size of sizes) {
    const { drained } = await readContent(run, keys, size)
    if (drained !== undefined) found.set(size.id, drained)
  }
  return found
}
