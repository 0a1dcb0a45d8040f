import type { ChannelModel, Options } from 'amqplib'
import { answered } from './connection/connection.ts'
import { onSeparateChannel } from './connection/separate-channel.ts'
import { isRefusal } from './refusal-codes.ts'

/**
 * Declares a queue and returns why the broker refuses it, or undefined. AMQP cannot query the settings of a queue, but
 * the refusal to declare it with other settings names the first difference.
 */
export async function declareRefusal(
  connection: ChannelModel,
  queue: string,
  settings: Options.AssertQueue,
): Promise<unknown> {
  try {
    await answered(onSeparateChannel(connection, (channel) => channel.assertQueue(queue, settings)))
    return undefined
  } catch (error) {
    // Every other error is a broken connection, and is retried.
    if (!isRefusal(error)) throw error
    return error
  }
}
