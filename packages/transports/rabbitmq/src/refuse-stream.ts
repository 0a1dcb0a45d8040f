import { RedriveError } from '@redrive/core'
import type { ChannelModel } from 'amqplib'
import { messageOf } from './connection/connection.ts'
import { declareRefusal } from './declare-refusal.ts'

/** Quorum queues have no priorities, so no broker creates this queue, and none has it. */
const IMPOSSIBLE = { 'x-queue-type': 'quorum', 'x-max-priority': 1 }

/**
 * Throws if an existing queue is a stream. The broker refuses to declare it with another type, and the refusal contains
 * the existing one.
 */
export async function refuseStream(connection: ChannelModel, queue: string): Promise<void> {
  const refusal = await declareRefusal(connection, queue, { durable: true, arguments: IMPOSSIBLE })
  if (refusal === undefined || !IS_STREAM.test(messageOf(refusal))) return
  throw new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The queue ${queue} is a stream. A stream keeps messages after they are acknowledged, so Redrive cannot retry them or move them to a dead-letter queue. Consume from a quorum or classic queue.`,
    { cause: refusal },
  )
}

const IS_STREAM = /'x-queue-type'.*'stream'/
