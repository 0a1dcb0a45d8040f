import { encodeHeaders, headerText } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { CAPABILITIES } from './capabilities.ts'
import { type Headers, SUBJECT, toHeaders } from './delivery.ts'
import type { NatsHeaderTable } from './header-tables.ts'
import type { Outgoing } from './publish.ts'
import type { Topology } from './topology.ts'

/** Why a plain consumer gave up a message that is in the stream with dead letters itself, not as an advisory. */
export const FOREIGN: keyof NatsHeaderTable = 'redrive-foreign'

/** Returns the message that stores a dead letter in its stream again. */
export function returnedOf(deadLetter: DrainedDeadLetter, { dead }: Topology): Outgoing {
  const { delivery, envelope, quarantined } = deadLetter
  const { deadLetterId = delivery.id, advisory } = envelope
  const letters = quarantined ? dead.quarantine : dead.deadLetters
  return {
    subject: dead.advisories.find((subject) => subject === advisory) ?? letters,
    bytes: delivery.bytes,
    headers: toHeaders({ ...delivery.headers, ...ownHeadersOf(deadLetter) }),
    messageId: `back:${deadLetterId}`,
  }
}

/** Returns the headers of Redrive. A message of a plain consumer had none. */
function ownHeadersOf({ delivery, envelope, reason }: DrainedDeadLetter): Headers {
  const { deadLetterHeaders, subject, foreign } = envelope
  if (deadLetterHeaders !== undefined) return JSON.parse(deadLetterHeaders) as Headers
  // The server writes another id when the message is stored again.
  if (foreign === undefined) return { 'redrive-id': headerText(delivery.id) }
  const { id, key, source, replayId, replaces, cycle } = delivery
  const state = { id, key, source, replayId, replaces, cycle, reason }
  const { headers } = encodeHeaders(state, CAPABILITIES.headerBudgetBytes)
  return { ...headers, [SUBJECT]: subject, [FOREIGN]: foreign }
}
