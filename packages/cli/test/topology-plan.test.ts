import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { urlOf } from '@redrive/dev-support'
import { rabbitmq, topologyOf } from '@redrive/rabbitmq'
import { type ChannelModel, connect } from 'amqplib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from './world.ts'

const shell = promisify(execFile)
const url = await urlOf('rabbitmq')
const management = await urlOf('rabbitmq', 'http')
const api = `${management.replace(/\/$/, '')}/api`
const queues: string[] = []
let model: ChannelModel

beforeAll(async () => {
  model = await connect(url)
})
afterAll(async () => {
  const channel = await model.createChannel()
  for (const queue of queues)
    for (const prefix of [queue, `${queue}.redrive`]) {
      const { source, deadLetters, later, exchange } = topologyOf(queue, 'quorum', prefix)
      for (const { name } of [source, deadLetters, ...later]) await channel.deleteQueue(name)
      await channel.deleteExchange(exchange)
    }
  await model.close()
})

function newQueue(): string {
  const queue = `plan-${randomUUID()}`
  queues.push(queue)
  return queue
}

/** Starts and stops a consumer that declares nothing: it rejects when something is missing. */
async function verify(queue: string): Promise<void> {
  const transport = rabbitmq({ url, queue, topology: 'verify' })
  try {
    await transport.open()
  } finally {
    await transport.close()
  }
}

test('the printed commands create everything that a consumer needs', async () => {
  const queue = newQueue()
  await expect(verify(queue)).rejects.toMatchObject({ code: 'TOPOLOGY_MISMATCH' })
  const { code, stdout } = await run(['topology', 'plan', url, '--queue', queue])
  expect(code).toBe(0)
  const env = { ...process.env, RABBITMQ_API: api }
  await shell('bash', ['-euc', stdout], { env })
  await expect(verify(queue)).resolves.toBeUndefined()
})

test('the printed definitions can be imported', async () => {
  const queue = newQueue()
  const { stdout } = await run([
    ...['topology', 'plan', url, '--queue', queue, '--format', 'definitions'],
  ])
  const { origin, username, password } = new URL(management)
  const answer = await fetch(`${origin}/api/definitions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    },
    body: stdout,
  })
  expect(answer.status).toBe(204)
  await expect(verify(queue)).resolves.toBeUndefined()
})

test('apply creates it, and a second time changes nothing', async () => {
  const queue = newQueue()
  const first = await run(['topology', 'apply', url, '--queue', queue])
  expect(first).toMatchObject({ code: 0, stderr: '' })
  expect(first.stdout).toContain(`created  queue ${queue}.delay.5s`)
  await expect(verify(queue)).resolves.toBeUndefined()
  const second = await run(['topology', 'apply', url, '--queue', queue])
  expect(second.stdout).toContain(`exists   queue ${queue}.delay.5s`)
  expect(second.stdout).not.toContain('created')
})

test('apply --adopt creates only the queues next to an existing queue', async () => {
  const queue = newQueue()
  const channel = await model.createChannel()
  await channel.assertQueue(queue, { durable: true, arguments: { 'x-max-length': 9 } })
  const { stdout } = await run(['topology', 'apply', url, '--queue', queue, '--adopt'])
  expect(stdout).toContain(`created  queue ${queue}.redrive.dlq`)
  expect(stdout).not.toMatch(/exchange|binding/)
  await channel.assertQueue(queue, { durable: true, arguments: { 'x-max-length': 9 } })
  await channel.close()
})

test('apply without --adopt explains what to do with an existing queue, and leaves nothing behind', async () => {
  const queue = newQueue()
  const channel = await model.createChannel()
  await channel.assertQueue(queue, { durable: true })
  const { code, stderr } = await run(['topology', 'apply', url, '--queue', queue])
  expect(code).not.toBe(0)
  expect(stderr).toContain(`topology: 'adopt'`)
  const other = await model.createChannel()
  other.on('error', () => undefined)
  await expect(other.checkQueue(`${queue}.dlq`)).rejects.toThrow('NOT_FOUND')
  await channel.close()
})

test.each([
  ['another broker', ['plan', 'kafka://localhost:9092', '--queue', 'orders']],
  ['no queue', ['plan', 'amqp://localhost']],
  ['an empty queue', ['plan', 'amqp://localhost', '--queue', '']],
  ['a virtual host that is not encoded', ['plan', 'amqp://localhost/%zz', '--queue', 'orders']],
  ['an unknown type', ['plan', 'amqp://localhost', '--queue', 'orders', '--type', 'stream']],
])('%s is a usage error', async (_, args) => {
  const { code, stdout, stderr } = await run(['topology', ...args])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).not.toBe('')
})
