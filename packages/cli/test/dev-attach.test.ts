import { randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { type ChannelModel, connect } from 'amqplib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { attach, brokerOf } from '../src/dev/attach.ts'
import { findQueues } from '../src/dev/attached-queues.ts'
import { clientOf, type DevProcess, startDev, terminalAt } from './dev-process.ts'

const cwd = mkdtempSync(join(tmpdir(), 'redrive-attach-'))
// The user that runs PostgreSQL must be able to enter it.
chmodSync(cwd, 0o755)
const queue = `attach-${randomUUID()}`
const deadLetterQueue = `${queue}.dlq`
const started: DevProcess[] = []
let url: string
let broker: ChannelModel

beforeAll(async () => {
  url = await urlOf('rabbitmq')
  broker = await connect(url)
  const channel = await broker.createConfirmChannel()
  await channel.assertQueue(deadLetterQueue, {
    durable: true,
    arguments: { 'x-queue-type': 'quorum' },
  })
  for (let order = 1; order <= 3; order++) {
    channel.sendToQueue(deadLetterQueue, Buffer.from(JSON.stringify({ order })), {
      persistent: true,
    })
  }
  await channel.waitForConfirms()
})

afterAll(async () => {
  for (const { child, ended } of started) {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGINT')
    await ended
  }
  const channel = await broker.createChannel()
  await channel.deleteQueue(deadLetterQueue)
  await broker.close()
  rmSync(cwd, { recursive: true, force: true })
})

async function attached(...args: readonly string[]): Promise<DevProcess> {
  const port = String(await freePort())
  const one = startDev({ cwd, args: ['--port', port, '--attach', url, queue, ...args] })
  started.push(one)
  return one
}

async function waiting(): Promise<number> {
  const channel = await broker.createChannel()
  const { messageCount } = await channel.checkQueue(deadLetterQueue)
  await channel.close()
  return messageCount
}

test('takes nothing from a broker before the user agrees, and never deletes what it took', {
  timeout: 180_000,
}, async () => {
  const careful = await attached()
  const { url: server, folder } = await careful.ready
  expect(folder).toBe(join(cwd, '.redrive-attached'))
  expect((await clientOf(server).call('listGroups', { query: {} })).groups).toEqual([])
  careful.child.kill('SIGINT')
  const { code, stderr } = await careful.ended
  expect(code).toBe(0)
  expect(stderr).toContain(`${deadLetterQueue} has 3 messages.`)
  expect(stderr).toContain('Nothing is taken')
  expect(readFileSync(join(folder, 'server.log'), 'utf8')).toContain('Serving api, watch.')
  expect(await waiting()).toBe(3)

  const agreed = await attached('--yes')
  const client = clientOf((await agreed.ready).url)
  await until(
    'the dead letters are in the catalog',
    async () => {
      const { groups } = await client.call('listGroups', { query: {} })
      return groups.reduce((sum, { openCount }) => sum + openCount, 0) === 3
    },
    { timeout: '1m' },
  )
  expect(await waiting()).toBe(0)
  agreed.child.kill('SIGINT')
  expect((await agreed.ended).code).toBe(0)

  const fresh = await attached('--fresh', '--yes')
  expect(await fresh.ended).toMatchObject({
    code: 5,
    stderr: expect.stringContaining('messages of your broker that are nowhere else') as unknown,
  })
})

test('ends when Ctrl-C or a signal ends the question', { timeout: 60_000 }, async () => {
  const { io, out } = terminalAt('', undefined)
  const broker = await brokerOf(io, { attach: url, queue })
  const folder = mkdtempSync(join(cwd, 'left-'))
  expect(await attach(io, folder, broker)).toBeUndefined()
  expect(out.questions).toEqual([`Take the messages of ${deadLetterQueue}?`])
  expect(out.text).not.toContain('Nothing is taken')
  const ending = new AbortController()
  // SIGTERM arrives while the prompt waits.
  const confirm = () => {
    ending.abort()
    return new Promise<undefined>(() => undefined)
  }
  const terminated = { ...io, signal: ending.signal, confirm }
  expect(await attach(terminated, folder, broker)).toBeUndefined()
  expect(readdirSync(folder)).toEqual([])
})

test('reports an address of another broker', async () => {
  const port = String(await freePort())
  const one = startDev({
    cwd,
    args: ['--port', port, '--dir', 'other', '--attach', 'kafka://h:9092', 'orders'],
  })
  started.push(one)
  expect(await one.ended).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected an address such as amqp://') as unknown,
  })
})

test('reports a queue without dead letters before it starts anything, and the folder stays free', async () => {
  const port = String(await freePort())
  const place = ['--port', port, '--dir', 'typo', '--attach', url]
  const one = startDev({ cwd, args: [...place, `${queue}-typo`] })
  started.push(one)
  const { code, stderr } = await one.ended
  expect(code).toBe(3)
  expect(stderr).toContain(
    `No queue with dead letters of "${queue}-typo" exists: ${queue}-typo.dlq, ${queue}-typo.redrive.dlq.`,
  )
  expect(stderr).toContain('--dead-letter-queue NAME')
  const marker = readFileSync(join(cwd, 'typo', 'redrive-dev.json'), 'utf8')
  expect(JSON.parse(marker)).not.toHaveProperty('mode')
})

test('finds the dead letters of a consumer that has adopted its queue', async () => {
  const adopted = `${queue}.redrive.dlq`
  const channel = await broker.createChannel()
  await channel.assertQueue(adopted, { durable: true })
  try {
    expect(await findQueues(url, queue, undefined)).toEqual({
      found: [{ name: adopted, depth: 0 }],
      unread: [expect.objectContaining({ name: deadLetterQueue })],
      place: { queue, topology: 'adopt' },
    })
    expect((await findQueues(url, queue, [deadLetterQueue])).place).toEqual({
      queue,
      topology: 'adopt',
      deadLetterQueues: [deadLetterQueue],
    })
  } finally {
    await channel.deleteQueue(adopted)
    await channel.close()
  }
  expect((await findQueues(url, queue, undefined)).place).toEqual({ queue })
  await expect(findQueues(url, queue, ['missing'])).rejects.toThrow('exists: missing.')
})
