import { business, exponential } from '@redrive/core'
import { redrive } from '@redrive/fastify'
import { consume } from '@redrive/runtime'
import fastify from 'fastify'
import { openOrders } from './broker.ts'
import { CardDeclined, Order, Payments } from './orders.ts'

const { RABBITMQ_URL, PORT = '3000', QUEUE = 'fastify-orders' } = process.env
const orders = await openOrders(QUEUE, RABBITMQ_URL)
const payments = new Payments()

const app = fastify({ logger: true })

app.post('/orders', async (request, reply) => {
  const order = Order.safeParse(request.body)
  if (!order.success) return reply.code(400).send({ problems: order.error.issues })
  await orders.publish(order.data.id, order.data)
  return reply.code(202).send({ status: 'accepted' })
})
app.get('/charged', async () => payments.charged)
app.addHook('onClose', () => orders.close())

await app.register(redrive, {
  consumers: {
    orders: () =>
      consume(orders.transport, ({ body }) => payments.charge(body), {
        schema: Order,
        classify: [business(CardDeclined)],
        retry: { backoff: exponential({ base: '100ms', cap: '1m' }) },
        logger: app.log,
      }),
  },
})

process.once('SIGTERM', () => void app.close())
process.once('SIGINT', () => void app.close())
await app.listen({ port: Number(PORT), host: '127.0.0.1' })
