import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { freePort, ROOT, type RunningProgram, runProgram, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib'
import { afterAll, beforeAll, expect, it } from 'vitest'

const prefix = `nestjs-${randomUUID().slice(0, 8)}-`
const queue = `${prefix}orders`
let connection: ChannelModel
let channel: ConfirmChannel
let program: RunningProgram
let base: string

beforeAll(async () => {
  execFileSync('pnpm', ['exec', 'tsc', '-b', 'examples/nestjs-service'], { cwd: ROOT })
  const RABBITMQ_URL = await urlOf('rabbitmq', 'amqp')
  connection = await connect(RABBITMQ_URL)
  channel = await connection.createConfirmChannel()
  const port = await freePort()
  base = `http://127.0.0.1:${port}`
  program = runProgram('examples/nestjs-service/dist/main.js', {
    ...{ RABBITMQ_URL, QUEUE_PREFIX: prefix, PORT: `${port}`, NO_COLOR: '1' },
  })
  let exit: number | null | undefined
  void program.exited.then((code) => (exit = code))
  await until('the service listens', () => {
    if (exit !== undefined) throw new Error(`The service ended: ${program.printed()}`)
    return program.printed().includes('listening on')
  })
}, 300_000)

afterAll(async () => {
  program.kill('SIGKILL')
  for (const name of [queue, `${prefix}shipments`]) {
    await channel.deleteQueue(name)
    await channel.deleteQueue(`${name}.dlq`)
    await channel.deleteExchange(`${name}.dlx`)
    await channel.deleteQueue(`${name}.delay.100ms`)
  }
  await connection.close()
})

const publish = async (to: string, messageId: string, body: unknown) => {
  channel.sendToQueue(to, Buffer.from(JSON.stringify(body)), { messageId, persistent: true })
  await channel.waitForConfirms()
}
const order = (id: string, card: string) => publish(queue, id, { id, amount: 10, card })
const printed = (text: string) => until(text, () => program.printed().includes(text))

it('retries an outage, dead-letters a declined card, and reports its health', async () => {
  await order('o-1', 'good')
  await order('o-2', 'bank-away')
  await order('o-3', 'declined')
  await publish(queue, 'o-4', { id: 'o-4', amount: 'ten' })
  await printed('charged o-1')
  await printed('charging o-2, attempt 2')
  await printed('charged o-2')
  const ids = await until('there are two dead letters', async () => {
    const { messageCount } = await channel.checkQueue(`${queue}.dlq`)
    return messageCount === 2 && (await deadLetters())
  })
  expect(ids).toEqual([
    ['o-3', 'business'],
    ['o-4', 'schema'],
  ])
  const health = await fetch(`${base}/health`)
  expect({ status: health.status, body: await health.json() }).toEqual({
    status: 200,
    body: {
      redrive: {
        status: 'up',
        consumers: { 'OrderService.charge': { status: 'up', reasons: [] } },
      },
    },
  })
})

async function deadLetters(): Promise<readonly (readonly [string, unknown])[]> {
  const found: (readonly [string, unknown])[] = []
  for (;;) {
    const message = await channel.get(`${queue}.dlq`, { noAck: true })
    if (message === false) return found.toSorted(([one], [other]) => one.localeCompare(other))
    const { headers, ...properties } = message.properties
    found.push([String(properties.messageId), headers?.['redrive-class']])
  }
}

it('runs @EventPattern handlers of messages that a NestJS client emits, and retries them', async () => {
  await publish(`${prefix}shipments`, 's-1', { pattern: 'shipment.sent', data: { id: 's-1' } })
  await printed('announced s-1, attempt 2')
  expect((await channel.checkQueue(`${prefix}shipments.dlq`)).messageCount).toBe(0)
})

it('finishes the running handler after SIGTERM, and leaves the next message in the queue', async () => {
  await order('o-5', 'slow-bank')
  await printed('charging o-5')
  expect(program.printed()).not.toContain('charged o-5')
  program.kill('SIGTERM')
  // NestJS ends the process with the signal that it got.
  expect(await program.exited).toBe(null)
  expect(program.printed()).toContain('charged o-5')
  await order('o-6', 'good')
  expect((await channel.checkQueue(queue)).messageCount).toBe(1)
  expect(await channel.get(queue, { noAck: true })).toMatchObject({
    properties: { messageId: 'o-6' },
  })
})
