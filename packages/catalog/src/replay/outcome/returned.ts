import type { DrainedDeadLetter } from '@redrive/runtime'
import type { RunSql } from '../../database.ts'
import type { Status } from '../../read/query.ts'
import { NAME_MAX, storable } from '../../text.ts'
import { replayIdIn } from '../signed-id.ts'
import { isSignedBy, type SignedItem } from './signed-item.ts'
import { LOCK_REFAILED, REFAILED_ITEMS, RETURNED_ITEMS } from './statements.ts'

/** A message from a broker that may be a replay that failed again. */
export interface ReturnedMessage {
  readonly drained: DrainedDeadLetter
  /** SHA-256 of the body. */
  readonly sha256: Buffer
  /** Epoch ms. */
  readonly lastFailedAt: number
}

export interface ItemRow extends SignedItem {
  readonly cycle: number
  readonly state: string
  /** Whether the run changed the body. */
  readonly is_edited: boolean
  /** Whether the run changed the body or the key. */
  readonly is_changed: boolean
  /** Set if the item was found by message id and body, and not by its replay id. */
  readonly message_id?: string
}

export interface LetterRow {
  readonly id: string
  readonly group_id: string
  readonly status: Status
  readonly first_ms: number
}

/** A message that is a replay of a dead letter, and whose replay has no outcome yet. */
export interface ReturnedReplay<Message extends ReturnedMessage> {
  readonly message: Message
  readonly item: ItemRow
  readonly letter: LetterRow
}

export interface FoundReturned<Message extends ReturnedMessage> {
  /** Messages that are not a replay of this source. */
  readonly fresh: readonly Message[]
  /** One for each dead letter. */
  readonly returned: readonly ReturnedReplay<Message>[]
  /** Number of fresh messages with the replay id of a replay that they do not belong to. */
  readonly mismatched: number
}

/**
 * Finds the messages that are replays, and locks their dead letters. A second copy of the same replay is left out,
 * because the outcome of this replay is already stored.
 */
export async function findReturned<Message extends ReturnedMessage>(
  run: RunSql,
  sourceId: number,
  messages: readonly Message[],
): Promise<FoundReturned<Message>> {
  const ids = messages.flatMap(({ drained }) => replayIdIn(drained.delivery.replayId) ?? [])
  const unnamed = messages.filter(isUnnamed)
  if (ids.length + unnamed.length === 0) return { fresh: messages, returned: [], mismatched: 0 }
  const items = await itemsOf(run, sourceId, ids, unnamed)
  const own = items.filter((item) => item.source_id === sourceId)
  const letters = await run<LetterRow>(LOCK_REFAILED, [own.map((item) => item.dead_letter_id)])
  // Reads the items again, now that the locks prevent changes.
  const locked = items.length === 0 ? [] : await itemsOf(run, sourceId, ids, unnamed)
  return sorted(sourceId, messages, locked, letters)
}

/** Whether a message has an id of its producer, but no replay id: its consumer may have removed the headers. */
const isUnnamed = ({ drained }: ReturnedMessage) =>
  drained.delivery.replayId === undefined && drained.identity === 'stable'

/** Reads the items of these replays, and the items whose message came back without its replay id. */
async function itemsOf(
  run: RunSql,
  sourceId: number,
  ids: readonly string[],
  unnamed: readonly ReturnedMessage[],
): Promise<readonly ItemRow[]> {
  const named = ids.length === 0 ? [] : await run<ItemRow>(REFAILED_ITEMS, [ids])
  if (unnamed.length === 0) return named
  const returned = await run<ItemRow>(RETURNED_ITEMS, [
    unnamed.map(messageIdOf),
    unnamed.map(contentOf),
    unnamed.map(({ lastFailedAt }) => lastFailedAt),
    sourceId,
  ])
  return [...named, ...returned]
}

const messageIdOf = ({ drained }: ReturnedMessage) => storable(drained.delivery.id, NAME_MAX)
const contentOf = ({ sha256 }: ReturnedMessage) => sha256.toString('hex')

const ENDED: ReadonlySet<string> = new Set(['resolved', 'failed_again'])

function sorted<Message extends ReturnedMessage>(
  sourceId: number,
  messages: readonly Message[],
  items: readonly ItemRow[],
  letters: readonly LetterRow[],
): FoundReturned<Message> {
  const byReplay = new Map(items.map((item) => [item.replay_id, item]))
  const byContent = new Map(
    items.flatMap((item) =>
      item.message_id === undefined ? [] : [[`${item.content} ${item.message_id}`, item] as const],
    ),
  )
  const itemOf = (message: Message) =>
    isUnnamed(message)
      ? byContent.get(`${contentOf(message)} ${messageIdOf(message)}`)
      : byReplay.get(replayIdIn(message.drained.delivery.replayId) ?? '')
  const byId = new Map(letters.map((letter) => [letter.id, letter]))
  const fresh: Message[] = []
  const returned = new Map<string, ReturnedReplay<Message>>()
  let mismatched = 0
  for (const message of messages) {
    const item = itemOf(message)
    const letter = byId.get(item?.dead_letter_id ?? '')
    if (item === undefined) fresh.push(message)
    else if (!isPublished(item, sourceId, message)) {
      fresh.push(message)
      mismatched += 1
    } else if (letter === undefined) fresh.push(message)
    else if (!ENDED.has(item.state)) returned.set(letter.id, { message, item, letter })
  }
  return { fresh, returned: [...returned.values()], mismatched }
}

/**
 * Whether the message equals the published message: its body, and the signature of its replay id, which is bound to
 * the source. Any other message must not replace the original and does not show that the replay failed. It must not
 * be dropped either, so it becomes a separate dead letter. The replay waits for its outcome and ends as unknown. A
 * message without a replay id was found by its id and body, only among the items of its source.
 */
const isPublished = (item: ItemRow, sourceId: number, message: ReturnedMessage) =>
  item.source_id === sourceId &&
  item.content === contentOf(message) &&
  (isUnnamed(message) || isSignedBy(item, message.drained.delivery.replayId ?? ''))
