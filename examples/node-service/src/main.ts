import { createServer } from 'node:http'
import { rabbitmq } from '@redrive/rabbitmq'
import { consume, consumerSet } from '@redrive/runtime'
import { charge, sendMail } from './work.ts'

const { RABBITMQ_URL: url = 'amqp://localhost', ORDERS = 'orders', MAILS = 'mails' } = process.env

const consumers = consumerSet({
  orders: () => consume(rabbitmq({ url, queue: ORDERS }), charge),
  mails: () => consume(rabbitmq({ url, queue: MAILS }), sendMail, { concurrency: 5 }),
})

const server = createServer((request, response) => {
  const health = consumers.health()
  const isReady = request.url === '/live' || health.status !== 'down'
  response.writeHead(isReady ? 200 : 503, { 'content-type': 'application/json' })
  response.end(JSON.stringify(health))
}).listen(Number(process.env['PORT'] ?? 3000))

async function stop(signal: string): Promise<void> {
  console.log(`${signal}: finishing running handlers`)
  await consumers.stop({ drain: '25s' })
  server.close()
  // A timer or a connection that is still open must not keep the process running.
  setTimeout(() => process.exit(1), 4_000).unref()
}
process.once('SIGTERM', (signal) => void stop(signal))
process.once('SIGINT', (signal) => void stop(signal))

// When it rejects, Node prints the error and ends the process with the exit code 1.
await consumers.start()
console.log('started')
