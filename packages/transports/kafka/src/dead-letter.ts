import { decodeHeaders, type FailureClass } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { saidBy } from './consume/in-flight.ts'
import { envelopeOf, type KafkaDelivery, readable, replayTopicOf } from './delivery.ts'
import { readForeignDeath } from './foreign.ts'
import { putBackEnvelopeOf } from './put-back.ts'

/** Reads a drained record of Redrive or of another library. `source`: the topic, if no header names one. */
export function deadLetterOf(delivery: KafkaDelivery, source: string): DrainedDeadLetter {
  const { raw } = delivery
  const decoded = decodeHeaders(readable(raw.headers))
  // The process that dead-lettered it adds a reason. If another library dead-lettered a replay, our headers have no reason.
  const foreign = decoded.reason === undefined ? readForeignDeath(raw) : undefined
  const origin = decoded.source ?? foreign?.origin ?? source
  const keepsOwnCycle = foreign === undefined || delivery.cycle.history.length > 0
  const cycle = keepsOwnCycle ? delivery.cycle : { ...foreign.cycle, number: delivery.cycle.number }
  const failureClass: FailureClass = cycle.history.at(-1)?.class ?? 'unknown'
  const reason = decoded.reason ?? foreign?.reason ?? 'unknown'
  // A copy of Redrive is in the partition of its original. Other programs may choose any partition.
  const partition = foreign === undefined ? raw.partition : foreign.partition
  const replayTo = decoded.source === undefined ? undefined : replayTopicOf(raw, origin)
  return {
    delivery: { ...saidBy(delivery), source: origin, cycle },
    origin,
    envelope: {
      ...envelopeOf(raw),
      ...putBackEnvelopeOf(raw),
      ...(partition === undefined ? {} : { partition: String(partition) }),
      ...(replayTo === undefined ? {} : { replayTo }),
    },
    quarantined: QUARANTINED.has(reason),
    class: failureClass,
    reason,
    // A record without an id is identified by its position, which does not change.
    identity: 'stable',
    ...(decoded.handler === undefined ? {} : { handler: decoded.handler }),
    ...(decoded.stack === undefined ? {} : { stack: decoded.stack }),
  }
}

/** The reasons of a decision that mean quarantine. */
const QUARANTINED: ReadonlySet<string> = new Set(['same_failure_repeated', 'crash_loop'])
