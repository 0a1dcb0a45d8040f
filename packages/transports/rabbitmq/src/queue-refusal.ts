import type { Channel, ChannelModel, Options } from 'amqplib'
import { isBefore } from './broker-version.ts'
import { answered, messageOf } from './connection/connection.ts'
import { onSeparateChannel } from './connection/separate-channel.ts'
import { isRefusal } from './refusal-codes.ts'

/**
 * Declares a queue and returns why the broker refuses it, or undefined. AMQP cannot query the settings of a queue, but
 * the refusal to declare it with other settings names the first difference.
 */
export const declareRefusal = (
  connection: ChannelModel,
  queue: string,
  settings: Options.AssertQueue,
): Promise<unknown> => refusalOf(connection, (channel) => channel.assertQueue(queue, settings))

/** Returns the setting that differs, if the refusal names one. */
export const differenceIn = (refusal: unknown): string | undefined =>
  DIFFERENCE.exec(messageOf(refusal))?.[1]

/** The setting comes before the name of the queue: RabbitMQ cuts the text at 255 bytes. */
const DIFFERENCE = /inequivalent arg '([^']+)' for queue /

/**
 * Consumes from a queue in a way that every queue refuses, and returns why. The prefetch is missing, which only a
 * stream refuses. The argument is valid only for a stream. Before 3.10, other queues would accept the consumer, so
 * nothing is sent.
 */
export async function consumeRefusal(connection: ChannelModel, queue: string): Promise<unknown> {
  if (isBefore(connection, 3, 10)) return undefined
  return refusalOf(connection, (channel) =>
    channel.consume(queue, () => undefined, { arguments: { 'x-stream-offset': 'next' } }),
  )
}

async function refusalOf(
  connection: ChannelModel,
  request: (channel: Channel) => Promise<unknown>,
): Promise<unknown> {
  try {
    await answered(onSeparateChannel(connection, request))
    return undefined
  } catch (error) {
    // Every other error is a broken connection, and is retried.
    if (!isRefusal(error)) throw error
    return error
  }
}
