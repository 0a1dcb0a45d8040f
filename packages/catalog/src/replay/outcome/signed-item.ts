import { isSignedId } from '../signed-id.ts'

/** A row with everything that the signed id of an item is bound to. */
export interface SignedItem {
  readonly replay_id: string
  readonly dead_letter_id: string
  readonly run_id: string
  readonly source_id: number
  /** SHA-256 of the published body, hex. Null: nothing was published. */
  readonly content: string | null
  /** How often it was published. */
  readonly publishes: number
  readonly key_id: number | null
  readonly secret: Buffer | null
}

/** Whether the replay id of a message is the published id of this item. */
export function isSignedBy(item: SignedItem, text: string): boolean {
  const { replay_id: replayId, dead_letter_id: deadLetterId, run_id: runId, content } = item
  // The plan of a changed body stores its hash, before anything is published.
  if (content === null || item.publishes === 0) return false
  // An earlier release published it with the id alone.
  if (item.key_id === null) return text === replayId
  if (item.secret === null) return false
  const replay = { replayId, sourceId: item.source_id, deadLetterId, runId, content }
  return isSignedId(text, replay, { id: item.key_id, secret: item.secret })
}
