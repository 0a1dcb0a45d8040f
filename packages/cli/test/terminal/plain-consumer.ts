import { until } from '@redrive/testing'
import { type ChannelModel, type ConfirmChannel, connect, type ConsumeMessage } from 'amqplib'
import { type Ends, ownDatabase, QUEUE, virtualHost } from './incident.ts'

export const COUNT = 200
export const DEAD = 'orders.dead'
const EXCHANGE = 'orders.dlx'

/** Dead letters of a consumer that uses only amqplib and a dead-letter exchange. */
export interface PlainIncident {
  readonly amqp: string
  readonly database: string
  /** Starts a consumer that works, except for the last order. */
  fix(): Promise<void>
  /** Returns the number of handled orders. */
  handled(): number
}

/** Creates 200 dead letters. The consumer rejects each message, and the broker moves it to the dead-letter queue. */
export async function plainIncident(ends: Ends): Promise<PlainIncident> {
  const [{ amqp }, database] = await Promise.all([virtualHost(ends), ownDatabase(ends)])
  const model = await connect(amqp)
  ends.push(() => model.close())
  const channel = await model.createConfirmChannel()
  await channel.assertExchange(EXCHANGE, 'fanout')
  await channel.assertQueue(DEAD)
  await channel.bindQueue(DEAD, EXCHANGE, '')
  await channel.assertQueue(QUEUE, { deadLetterExchange: EXCHANGE })
  await send(channel)
  const rejecting = await consumed(model, (message, { nack }) => nack(message, false, false))
  await until('all orders are dead letters', async () => {
    const { messageCount } = await channel.checkQueue(DEAD)
    return messageCount === COUNT
  })
  await rejecting.close()
  const handled = new Set<string>()
  return {
    amqp,
    database,
    async fix() {
      await consumed(model, (message, { ack, nack }) => {
        const id = String(message.properties.messageId)
        if (id === `order-${COUNT}`) return nack(message, false, false)
        handled.add(id)
        ack(message)
      })
    },
    handled: () => handled.size,
  }
}

async function send(channel: ConfirmChannel): Promise<void> {
  for (let order = 1; order <= COUNT; order++) {
    channel.sendToQueue(QUEUE, Buffer.from(JSON.stringify({ order })), {
      messageId: `order-${order}`,
      contentType: 'application/json',
    })
  }
  await channel.waitForConfirms()
}

type Settle = Pick<ConfirmChannel, 'ack' | 'nack'>

async function consumed(
  model: ChannelModel,
  handle: (message: ConsumeMessage, settle: Settle) => void,
): Promise<ConfirmChannel> {
  const channel = await model.createConfirmChannel()
  await channel.prefetch(10)
  const settle = { ack: channel.ack.bind(channel), nack: channel.nack.bind(channel) }
  await channel.consume(QUEUE, (message) => {
    if (message !== null) handle(message, settle)
  })
  return channel
}
