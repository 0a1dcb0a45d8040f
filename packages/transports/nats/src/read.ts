import { decodeHeaders } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { JetStreamManager } from '@nats-io/jetstream'
import { contentOf, headersIn, ownHeaders, type PlacedMessage } from './delivery.ts'
import { failureOf, type ForeignDeath, isReason, readAdvisory, readOriginal } from './foreign.ts'
import { FOREIGN } from './put-back.ts'
import type { Topology } from './topology.ts'

/** A drained message, and the death that the server announced with it. */
export interface ReadMessage {
  readonly deadLetter: DrainedDeadLetter
  readonly death?: ForeignDeath
}

/** Reads a message of the stream with dead letters. An advisory is read together with its original. */
export async function readDeadLetter(
  message: PlacedMessage,
  topology: Topology,
  manager: JetStreamManager,
): Promise<ReadMessage> {
  const { stream: source, dead } = topology
  if (!dead.advisories.includes(message.subject)) return { deadLetter: ownOf(message, topology) }
  const death = readAdvisory(message, source)
  const original = death === undefined ? undefined : await readOriginal(manager, death)
  if (death === undefined || original === undefined)
    return { deadLetter: unreadable(message, source, death) }
  const delivery = contentOf(source, original, original.place)
  const failure = failureOf(death)
  const cycle = {
    ...delivery.cycle,
    attempts: failure.number,
    runs: failure.number,
    firstFailedAt: failure.at,
    history: [failure],
  }
  const deadLetter: DrainedDeadLetter = {
    delivery: { ...delivery, cycle },
    origin: source,
    // Not the subject of its header: a producer can forge that, and a replay is published to this one.
    envelope: { subject: original.subject, foreign: death.reason },
    quarantined: false,
    class: 'unknown',
    reason: death.reason,
    identity: 'stable',
  }
  return { deadLetter, death }
}

function ownOf(message: PlacedMessage, { stream, dead }: Topology): DrainedDeadLetter {
  const { place } = message
  const headers = headersIn(message.headers)
  const { reason = 'unknown', handler, stack, source } = decodeHeaders(headers)
  const delivery = contentOf(source ?? stream, message, { ...place, deliveries: 1 })
  const foreign = headers[FOREIGN]
  return {
    delivery,
    origin: delivery.source,
    envelope: {
      subject: delivery.subject,
      ...(isReason(foreign) ? { foreign } : {}),
      deadLetterHeaders: JSON.stringify(ownHeaders(headers)),
      deadLetterId: `${place.stream}:${place.sequence}:${place.storedAt}`,
    },
    quarantined: message.subject === dead.quarantine,
    class: delivery.cycle.history.at(-1)?.class ?? 'unknown',
    reason,
    identity: 'stable',
    ...(handler === undefined ? {} : { handler }),
    ...(stack === undefined ? {} : { stack }),
  }
}

/** Returns an advisory itself, because the message that it announces no longer exists. */
function unreadable(
  message: PlacedMessage,
  source: string,
  death: ForeignDeath | undefined,
): DrainedDeadLetter {
  const { place } = message
  const why =
    death === undefined
      ? 'This is not an advisory of the server about the stream.'
      : `A plain consumer gave up message ${death.sequence} of stream "${death.stream}", and the stream no longer has it.`
  return {
    delivery: contentOf(source, message, { ...place, deliveries: 1 }),
    origin: source,
    envelope: { advisory: message.subject },
    quarantined: false,
    class: 'unknown',
    reason: death?.reason ?? 'unknown',
    identity: 'stable',
    problem: { code: 'unreadable', message: why },
  }
}
