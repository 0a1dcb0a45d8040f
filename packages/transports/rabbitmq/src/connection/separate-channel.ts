import type { Channel, ChannelModel } from 'amqplib'
import { closeChannel } from './connection.ts'

/** Runs `work` on a separate channel, because a rejected request closes the channel it was sent on. */
export async function onSeparateChannel<T>(
  connection: ChannelModel,
  work: (channel: Channel) => Promise<T>,
): Promise<T> {
  const channel = await connection.createChannel()
  let isClosed = false
  channel.on('error', () => undefined)
  channel.on('close', () => {
    isClosed = true
  })
  try {
    return await work(channel)
  } finally {
    if (!isClosed) await closeChannel(channel)
  }
}
