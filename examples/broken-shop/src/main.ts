/** An order each 200 ms, on the queue `orders`. A third of them fails at least once. */
import { createServer } from 'node:http'
import { setInterval as every } from 'node:timers/promises'
import { exponential, integration, schema } from '@redrive/core'
import { rabbitmq } from '@redrive/rabbitmq'
import { consume } from '@redrive/runtime'
import { prometheus } from '@redrive/telemetry'
import { connect } from 'amqplib'

const URL = process.env['RABBITMQ_URL'] ?? 'amqp://guest:guest@127.0.0.1:5672'
const QUEUE = 'orders'
const EVERY_MS = 200
/** The payment service is down for the last 20 s of each two minutes. */
const [PERIOD_MS, DOWN_MS] = [120_000, 20_000]

interface Order {
  readonly number: number
  readonly amount: number | string
  readonly items: readonly { readonly article: string }[]
}

class UnknownArticle extends Error {}
class WrongAmount extends Error {}

const isPaymentDown = () => Date.now() % PERIOD_MS > PERIOD_MS - DOWN_MS

const metrics = prometheus()
const consumer = await consume(
  rabbitmq({ url: URL, queue: QUEUE }),
  ({ body }) => charge(body as Order),
  {
    name: 'charge-order',
    dependency: 'payments',
    classify: [integration(UnknownArticle), schema(WrongAmount)],
    retry: { attempts: 3, backoff: exponential({ base: '500ms', cap: '5s' }) },
  },
)

function charge({ amount, items }: Order): void {
  const [first] = items
  // The bug: an order without items has no first one.
  const { article } = first as { readonly article: string }
  if (article === 'unicorn') throw new UnknownArticle(`the catalogue has no article ${article}`)
  if (typeof amount !== 'number') {
    throw new WrongAmount(`expected a number as amount, received ${typeof amount}`)
  }
  if (isPaymentDown()) {
    const message = 'connect ECONNREFUSED payments:443'
    throw Object.assign(new Error(message), { code: 'ECONNREFUSED' })
  }
}

const orderOf = (number: number): Order => ({
  number,
  amount: number % 25 === 0 ? `${number} EUR` : number,
  items: number % 50 === 0 ? [] : [{ article: number % 40 === 0 ? 'unicorn' : 'book' }],
})

const server = createServer((_, response) => {
  response.setHeader('content-type', metrics.contentType).end(metrics.text())
}).listen(Number(process.env['METRICS_PORT'] ?? 9464))
const connection = await connect(URL)
const channel = await connection.createConfirmChannel()
const closing = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => closing.abort())

let number = 0
try {
  for await (const _ of every(EVERY_MS, undefined, { signal: closing.signal })) {
    number += 1
    const body = Buffer.from(JSON.stringify(orderOf(number)))
    const options = {
      persistent: true,
      messageId: crypto.randomUUID(),
      contentType: 'application/json',
    }
    channel.sendToQueue(QUEUE, body, options)
  }
} catch (error) {
  if (!closing.signal.aborted) throw error
}
await consumer.stop()
await connection.close()
server.close()
server.closeAllConnections()
