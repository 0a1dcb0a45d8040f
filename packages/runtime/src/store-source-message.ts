import { type Failure, type FailureCycle, RedriveError } from '@redrive/core'
import type { DrainedDeadLetter } from './ports/dead-letter-source.ts'
import type { StoredDeadLetter } from './ports/dead-letter-store.ts'

/** Fields of a stored dead letter that a drained one has no place for. */
interface Rest {
  readonly sink: string
  readonly reason: StoredDeadLetter['reason']
  readonly failure: Failure
  readonly job?: string
  readonly savedAt: number
  readonly eventId: string
  readonly at: number
}

/** Returns the dead letter of a store as the catalog reads it. */
export function drainedOf(deadLetter: StoredDeadLetter, source: string): DrainedDeadLetter {
  const { id, sink, event, reason, failure, job, savedAt } = deadLetter
  const { key, type, lane, bytes, contentType, headers, at } = event
  const rest: Rest = {
    sink,
    reason,
    failure,
    ...(job !== undefined && { job }),
    savedAt,
    eventId: event.id,
    at,
  }
  const cycle = withFailure(deadLetter)
  return {
    delivery: {
      id,
      source,
      lane,
      key,
      type,
      bytes,
      contentType,
      headers,
      cycle,
      deliveryCount: 1,
      replayId: deadLetter.replayId,
      headerProblems: [],
    },
    origin: source,
    envelope: { stored: JSON.stringify(rest) },
    quarantined: false,
    class: failure.class,
    reason,
    identity: 'stable',
    handler: sink,
    ...(failure.stack !== undefined && { stack: failure.stack }),
  }
}

/** Returns the cycle with the failure in its history, also when nothing was sent: the catalog groups by it. */
function withFailure({ cycle, failure, savedAt }: StoredDeadLetter): FailureCycle {
  const last = cycle.history.at(-1)
  if (last?.signature === failure.signature) return cycle
  const { class: failureClass, signature, code, type, message } = failure
  const record = {
    number: (last?.number ?? 0) + 1,
    at: savedAt,
    waitedMs: 0,
    class: failureClass,
    signature,
    code,
    type,
    message,
    counted: false,
  }
  return {
    ...cycle,
    firstFailedAt: cycle.firstFailedAt ?? savedAt,
    history: [...cycle.history, record],
  }
}

/** Returns the dead letter of the store. Body, key and headers may have been edited. */
export function storedOf({ delivery, envelope }: DrainedDeadLetter): StoredDeadLetter {
  const { id, key, type, lane, bytes, contentType, headers, cycle, replayId } = delivery
  const { eventId, at, job, ...rest } = restOf(envelope['stored'])
  return {
    ...rest,
    id,
    job,
    cycle,
    ...(replayId !== undefined && { replayId }),
    event: {
      id: eventId,
      key: key ?? eventId,
      type: type ?? 'unknown',
      lane,
      at,
      bytes,
      contentType: contentType ?? 'application/octet-stream',
      headers: textsOf(headers),
    },
  }
}

/** Headers of a stored event are texts; an edit cannot add others. */
const textsOf = (headers: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))

function restOf(text: string | undefined): Rest {
  if (text !== undefined) return JSON.parse(text) as Rest
  throw new RedriveError(
    'REFUSED',
    'This dead letter has no data of a store, so no emitter can send it. It comes from another source. Discard it.',
  )
}
