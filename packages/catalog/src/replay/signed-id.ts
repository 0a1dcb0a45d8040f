import { createHmac, timingSafeEqual } from 'node:crypto'
import { isId } from '../read/check.ts'

/** A replay of one dead letter, as it was published. */
export interface PublishedReplay {
  readonly replayId: string
  readonly sourceId: number
  readonly deadLetterId: string
  readonly runId: string
  /** SHA-256 of the published body, hex. */
  readonly content: string
}

/** A key that signs replay ids. It is stored in the database of the catalog and never sent. */
export interface ReplayKey {
  readonly id: number
  readonly secret: Buffer
}

/** 16 bytes: enough against guessing, and short in a header. */
const MAC_BYTES = 16
const ID_LENGTH = 36

/**
 * Returns the replay id that a message carries: the id, the id of the key, and a MAC over everything that the
 * replay belongs to. Consumers only return this text, so they need no key. All users who may look at a run see the id
 * alone. Without the MAC, they cannot make a confirmation or a failed copy of the replay.
 */
export function signedId(replay: PublishedReplay, key: ReplayKey): string {
  const { replayId, sourceId, deadLetterId, runId, content } = replay
  const bound = JSON.stringify([
    'redrive replay 1',
    sourceId,
    deadLetterId,
    runId,
    replayId,
    content,
  ])
  const mac = createHmac('sha256', key.secret).update(bound).digest().subarray(0, MAC_BYTES)
  return `${replayId}.${key.id}.${mac.toString('base64url')}`
}

/** Returns the replay id in the text of a message, signed or not; undefined if the text contains none. */
export function replayIdIn(text: string | undefined): string | undefined {
  const id = text?.slice(0, ID_LENGTH)
  return id !== undefined && isId(id) && (text?.[ID_LENGTH] ?? '.') === '.' ? id : undefined
}

/** Whether the text of a message is the signed id of this replay. */
export function isSignedId(text: string, replay: PublishedReplay, key: ReplayKey): boolean {
  const expected = Buffer.from(signedId(replay, key))
  const found = Buffer.from(text)
  return found.length === expected.length && timingSafeEqual(found, expected)
}
