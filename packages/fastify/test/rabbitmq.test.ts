import { randomUUID } from 'node:crypto'
import { urlOf } from '@redrive/dev-support'
import { it } from 'vitest'
import { exerciseExample } from './example.ts'

it('runs the example on RabbitMQ, and stops it on SIGTERM', async () => {
  const RABBITMQ_URL = await urlOf('rabbitmq', 'amqp')
  await exerciseExample({ RABBITMQ_URL, QUEUE: `fastify-orders-${randomUUID()}` })
})
