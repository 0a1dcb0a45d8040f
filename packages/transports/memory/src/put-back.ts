import { type Delivery, RedriveError } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Handed, MemoryMessage } from './queue.ts'

/** Returns what a dead letter needs to be put back: its queue, its id there, and the headers of Redrive. */
export function putBackEnvelopeOf(
  queue: string,
  { message }: Handed,
  { headers: own }: Delivery,
): Readonly<Record<string, string>> {
  const others = Object.entries(message.headers).filter(([name]) => !Object.hasOwn(own, name))
  return {
    deadLetterQueue: queue,
    deadLetterId: message.id,
    // Redrive wrote them, so they are JSON.
    deadLetterHeaders: JSON.stringify(Object.fromEntries(others)),
  }
}

/** Returns the dead letter as it was in its queue, and the queue. */
export function putBackOf({ delivery, envelope }: DrainedDeadLetter): {
  readonly queue: string
  readonly message: MemoryMessage
} {
  const { deadLetterQueue: queue, deadLetterId, deadLetterHeaders = '{}' } = envelope
  if (queue === undefined)
    throw new RedriveError(
      'REFUSED',
      `The dead letter "${delivery.id}" has no stored queue: an older release drained it. Replay or discard it.`,
    )
  const { id, bytes, contentType, type, lane, headers } = delivery
  const others = JSON.parse(deadLetterHeaders) as MemoryMessage['headers']
  return {
    queue,
    message: {
      ...{ id: deadLetterId ?? id, bytes, contentType, type, lane },
      headers: { ...headers, ...others },
    },
  }
}
