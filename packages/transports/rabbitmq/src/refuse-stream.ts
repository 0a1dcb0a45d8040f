import { RedriveError } from '@redrive/core'
import type { ChannelModel } from 'amqplib'
import { answered, messageOf } from './connection/connection.ts'
import { onSeparateChannel } from './connection/separate-channel.ts'

/** Quorum queues have no priorities, so no broker creates this queue, and none has it. */
const IMPOSSIBLE = { 'x-queue-type': 'quorum', 'x-max-priority': 1 }

/**
 * Throws if an existing queue is a stream. AMQP cannot query the type of a queue. But the broker refuses to
 * declare the queue with another type, and the refusal contains the existing one.
 */
export async function refuseStream(connection: ChannelModel, queue: string): Promise<void> {
  const refusal = await answered(
    onSeparateChannel(connection, (channel) =>
      channel.assertQueue(queue, { durable: true, arguments: IMPOSSIBLE }).then(
        () => undefined,
        (error: unknown) => error,
      ),
    ),
  )
  if (refusal === undefined || !IS_STREAM.test(messageOf(refusal))) return
  throw new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The queue ${queue} is a stream. A stream keeps messages after they are acknowledged, so Redrive cannot retry them or move them to a dead-letter queue. Consume from a quorum or classic queue.`,
    { cause: refusal },
  )
}

const IS_STREAM = /'x-queue-type'.*'stream'/
