import { RedriveError } from '@redrive/core'
import type { ChannelModel } from 'amqplib'
import { messageOf } from './connection/connection.ts'
import { consumeRefusal } from './queue-refusal.ts'

/**
 * Throws if an existing queue is a stream. The reason is at the beginning of the refusal, before the name of the
 * queue: RabbitMQ cuts the text at 255 bytes.
 */
export async function refuseStream(connection: ChannelModel, queue: string): Promise<void> {
  const refusal = await consumeRefusal(connection, queue)
  if (refusal === undefined || !IS_STREAM.test(messageOf(refusal))) return
  throw new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The queue ${queue} is a stream. A stream keeps messages after they are acknowledged, so Redrive cannot retry them or move them to a dead-letter queue. Consume from a quorum or classic queue.`,
    { cause: refusal },
  )
}

const IS_STREAM = /PRECONDITION_FAILED - consumer prefetch count is not set/
