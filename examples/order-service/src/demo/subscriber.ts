import { type ChannelModel, connect, type ConsumeMessage } from 'amqplib'
import { Happenings } from './happenings.ts'

export interface Received {
  readonly id: string
  readonly routingKey: string
  readonly key: string
  readonly body: { readonly orderId: string; readonly amountCents: number }
}

/** Another team's service. It uses RabbitMQ and has no access to the shop's database or to Redrive. */
export class Subscriber {
  /** Each event once. A relay sends at least once, and the message id identifies duplicates. */
  readonly events = new Happenings<Received>()
  readonly #connection: ChannelModel
  readonly #exchange: string

  private constructor(connection: ChannelModel, exchange: string) {
    this.#connection = connection
    this.#exchange = exchange
  }

  static async connect(url: string, exchange: string): Promise<Subscriber> {
    const connection = await connect(url, { timeout: 3_000 })
    const subscriber = new Subscriber(connection, exchange)
    const channel = await connection.createChannel()
    await channel.assertExchange(exchange, 'topic')
    const { queue } = await channel.assertQueue('', { exclusive: true })
    await channel.bindQueue(queue, exchange, 'order.*')
    await channel.consume(queue, (message) => subscriber.#receive(message), { noAck: true })
    return subscriber
  }

  /** Waits until it has received the events that these orders are paid. */
  async waitForPaid(orderIds: readonly string[]): Promise<void> {
    for (const orderId of orderIds) {
      await this.events.one(`${orderId} is paid`, ({ body }) => body.orderId === orderId)
    }
  }

  async close(): Promise<void> {
    const channel = await this.#connection.createChannel()
    await channel.deleteExchange(this.#exchange)
    await this.#connection.close()
  }

  #receive(message: ConsumeMessage | null): void {
    if (message === null) return
    const { properties, fields, content } = message
    const id = String(properties.messageId)
    if (this.events.all.some((known) => known.id === id)) return
    this.events.add({
      id,
      routingKey: fields.routingKey,
      key: String(properties.headers?.['redrive-key']),
      body: JSON.parse(content.toString()) as Received['body'],
    })
  }
}
