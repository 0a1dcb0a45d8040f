import { randomUUID } from 'node:crypto'
import { withTimeout } from '@redrive/runtime/internal'
import type { ChannelModel } from 'amqplib'
import { onSeparateChannel } from './connection/separate-channel.ts'

/** 2 s for the answer: a broker that blocks publishing gives none, and the permission is then not known. */
const PERMISSION_MS = 2_000

/** Publishes a message that no queue accepts: the broker returns it, or closes the channel with an error. */
export function publishProblem(connection: ChannelModel): Promise<unknown> {
  const routingKey = `redrive-permission-check-${randomUUID()}`
  const asked = onSeparateChannel(connection, (channel) => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    for (const name of ['return', 'close'] as const) channel.once(name, () => resolve(undefined))
    channel.once('error', resolve)
    channel.publish('', routingKey, Buffer.alloc(0), { mandatory: true })
    return promise
  })
  return withTimeout(asked, PERMISSION_MS, () => undefined)
}
