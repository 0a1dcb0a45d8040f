import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, ROOT, type RunningProgram, runProgram, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { type ConfirmChannel, connect } from 'amqplib'
import { expect, it, onTestFinished } from 'vitest'

const FILE = 'examples/node-service/src/main.ts'

interface Service {
  readonly program: RunningProgram
  readonly channel: ConfirmChannel
  readonly orders: string
  readonly base: string
  readonly order: (id: string) => Promise<void>
  readonly printed: (text: string) => Promise<unknown>
}

async function startService(): Promise<Service> {
  const RABBITMQ_URL = await urlOf('rabbitmq', 'amqp')
  const [orders, mails] = [`node-orders-${randomUUID()}`, `node-mails-${randomUUID()}`]
  const connection = await connect(RABBITMQ_URL)
  const channel = await connection.createConfirmChannel()
  const port = await freePort()
  const env = { RABBITMQ_URL, ORDERS: orders, MAILS: mails, PORT: `${port}` }
  const program = runProgram(FILE, env)
  onTestFinished(async () => {
    program.kill('SIGKILL')
    for (const name of [orders, mails]) {
      for (const queue of [name, `${name}.dlq`]) await channel.deleteQueue(queue)
      await channel.deleteExchange(`${name}.dlx`)
    }
    await connection.close()
  })
  const printed = (text: string) => until(text, () => program.printed().includes(text))
  await printed('started')
  return {
    ...{ program, channel, orders, printed, base: `http://127.0.0.1:${port}` },
    async order(messageId) {
      channel.sendToQueue(orders, Buffer.from('{}'), { messageId, persistent: true })
      await channel.waitForConfirms()
    },
  }
}

it('is the program of the page about plain Node', () => {
  const page = readFileSync(join(ROOT, 'docs/node.md'), 'utf8')
  expect(page).toContain(
    `<!-- program: ${FILE} -->\n\`\`\`ts\n${readFileSync(join(ROOT, FILE), 'utf8')}\`\`\``,
  )
})

it('reports ready, finishes the running handler after SIGTERM and exits with 0', async () => {
  const { program, channel, orders, base, order, printed } = await startService()
  const ready = await fetch(`${base}/healthz/ready`)
  expect({ status: ready.status, body: await ready.json() }).toEqual({
    status: 200,
    body: {
      status: 'up',
      consumers: { orders: { status: 'up', reasons: [] }, mails: { status: 'up', reasons: [] } },
    },
  })
  const consumer = await fetch(`${base}/healthz/consumer`)
  const empty = { deadLetters: 0, failureRate: null, breaker: { phase: 'closed' } }
  expect(await consumer.json()).toMatchObject({ status: 'up', consumers: { orders: empty } })
  await order('o-1')
  await printed('charging o-1')
  program.kill('SIGTERM')
  await printed('SIGTERM: finishing running handlers')
  expect(program.printed()).not.toContain('charged o-1')
  expect((await fetch(`${base}/healthz/ready`)).status).toBe(503)
  expect((await fetch(`${base}/healthz/live`)).status).toBe(200)
  expect(await program.exited).toBe(0)
  expect(program.printed()).toContain('charged o-1')
  expect((await channel.checkQueue(orders)).messageCount).toBe(0)
})

it('ends at a second signal, and its message is delivered again', async () => {
  const { program, channel, orders, order, printed } = await startService()
  await order('o-1')
  await printed('charging o-1')
  program.kill('SIGTERM')
  await printed('SIGTERM: finishing running handlers')
  program.kill('SIGTERM')
  expect(await program.exited).toBe(null)
  await until('the message is back', async () => {
    const { messageCount } = await channel.checkQueue(orders)
    return messageCount === 1
  })
})

it('exits with 1 and the error when a consumer does not start', async () => {
  const port = await freePort()
  const program = runProgram(FILE, {
    RABBITMQ_URL: `amqp://127.0.0.1:${await freePort()}`,
    PORT: `${port}`,
  })
  onTestFinished(() => program.kill('SIGKILL'))
  expect(await program.exited).toBe(1)
  expect(program.printed()).toContain('ECONNREFUSED')
})
