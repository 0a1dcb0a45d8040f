import { createServer } from 'node:http'
import { rabbitmq, rabbitmqSource } from '@redrive/rabbitmq'
import { consume, consumerSet, healthHandler } from '@redrive/runtime'
import { charge, sendMail } from './work.ts'

const { RABBITMQ_URL: url = 'amqp://localhost', ORDERS = 'orders', MAILS = 'mails' } = process.env

const consumers = consumerSet({
  orders: () => consume(rabbitmq({ url, queue: ORDERS }), charge),
  mails: () => consume(rabbitmq({ url, queue: MAILS }), sendMail, { concurrency: 5 }),
})

const deadLetters = rabbitmqSource({ url, queue: ORDERS })
const health = healthHandler(consumers, { deadLetters: { orders: () => deadLetters.depth() } })
const server = createServer((request, response) => health(request, response))
server.listen(Number(process.env['PORT'] ?? 3000))

async function stop(signal: string): Promise<void> {
  console.log(`${signal}: finishing running handlers`)
  await Promise.all([consumers.stop({ drain: '25s' }), deadLetters.close()])
  server.close()
  // A timer or a connection that is still open must not keep the process running.
  setTimeout(() => process.exit(1), 4_000).unref()
}
process.once('SIGTERM', (signal) => void stop(signal))
process.once('SIGINT', (signal) => void stop(signal))

// When it rejects, Node prints the error and ends the process with the exit code 1.
await consumers.start()
console.log('started')
