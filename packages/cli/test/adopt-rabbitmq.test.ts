import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT, type RunningProgram, runProgram, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { type ConfirmChannel, connect } from 'amqplib'
import { expect, onTestFinished, test } from 'vitest'
import { rewriteAmqplib } from '../src/adopt/amqplib.ts'
import { changedLines } from '../src/commands/init-project.ts'

const FOLDER = 'packages/cli/test/newcomer'
const textOf = (file: string) => readFileSync(join(ROOT, FOLDER, file), 'utf8')

interface Queue {
  readonly queue: string
  readonly channel: ConfirmChannel
  readonly start: (file: string) => RunningProgram
  readonly order: (id: string, card: string, amount?: unknown) => Promise<void>
  readonly deadLetters: (queue: string) => Promise<readonly (readonly [string, unknown])[]>
}

/** A queue that the consumer without Redrive has created. */
async function existingQueue(): Promise<Queue> {
  const AMQP_URL = await urlOf('rabbitmq', 'amqp')
  const queue = `newcomer-${randomUUID()}`
  const connection = await connect(AMQP_URL)
  const channel = await connection.createConfirmChannel()
  const start = (file: string) => {
    const program = runProgram(file, { AMQP_URL, QUEUE: queue })
    onTestFinished(() => program.kill('SIGKILL'))
    return program
  }
  onTestFinished(async () => {
    const made = ['', '.dead', '.retry', '.redrive.dlq', '.redrive.delay.1s', '.redrive.delay.2s']
    for (const suffix of made) await channel.deleteQueue(queue + suffix)
    await connection.close()
  })
  const before = start(`${FOLDER}/before.js`)
  await until('the old consumer consumes', async () => {
    if (!before.printed().includes('Error')) return hasConsumer(AMQP_URL, queue)
    throw new Error(before.printed())
  })
  before.kill('SIGTERM')
  await before.exited
  return {
    ...{ queue, channel, start },
    async order(id, card, amount = 10) {
      const body = Buffer.from(JSON.stringify({ id, amount, card }))
      channel.sendToQueue(queue, body, { messageId: id, persistent: true })
      await channel.waitForConfirms()
    },
    async deadLetters(from) {
      const found: (readonly [string, unknown])[] = []
      for (;;) {
        const message = await channel.get(from, { noAck: true })
        if (message === false) return found.toSorted(([a], [b]) => a.localeCompare(b))
        const { headers, ...properties } = message.properties
        found.push([String(properties.messageId), headers?.['redrive-class']])
      }
    },
  }
}

/** Checks on another connection: the broker closes a channel that asks for a missing queue. */
async function hasConsumer(url: string, queue: string): Promise<boolean> {
  const connection = await connect(url)
  const channel = await connection.createChannel()
  channel.on('error', () => undefined)
  try {
    return (await channel.checkQueue(queue)).consumerCount > 0
  } catch {
    return false
  } finally {
    await connection.close().catch(() => undefined)
  }
}

test('a typical consumer with amqplib needs at most 15 changed lines', () => {
  const [before, after] = [textOf('before.js'), textOf('after.js')]
  expect(before.split('\n')).toHaveLength(68)
  expect(changedLines(before, after)).toBe(14)
})

test('the changed consumer runs on the existing queue, and the old one continues after it', async () => {
  const { queue, channel, start, order, deadLetters } = await existingQueue()
  const after = start(`${FOLDER}/after.js`)
  await order('o-1', 'good')
  await order('o-2', 'bank-away')
  await order('o-3', 'declined')
  await order('o-4', 'good', 'ten')
  await until('both good orders are charged', () => {
    if (after.printed().includes('at file:')) throw new Error(after.printed())
    return /charged o-1[^]*charged o-2/.test(after.printed())
  })
  await until('two dead letters', async () => {
    const { messageCount } = await channel.checkQueue(`${queue}.redrive.dlq`)
    return messageCount === 2
  })
  expect(await deadLetters(`${queue}.redrive.dlq`)).toEqual([
    ['o-3', 'business'],
    ['o-4', 'schema'],
  ])
  after.kill('SIGTERM')
  expect(await after.exited).toBe(0)

  // Going back: the queue still has the arguments of the old consumer.
  const before = start(`${FOLDER}/before.js`)
  await order('o-5', 'good')
  await order('o-6', 'declined')
  await until('the old consumer works', () => before.printed().includes('charged o-5'))
  await until('its dead letter is where it was', async () => {
    const { messageCount } = await channel.checkQueue(`${queue}.dead`)
    return messageCount === 1
  })
  expect(await deadLetters(`${queue}.dead`)).toEqual([['o-6', undefined]])
})

/** Writes a changed consumer next to what it imports. */
function changedFile(text: string): string {
  const folder = mkdtempSync(join(ROOT, FOLDER, 'changed-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'payments.js'), textOf('payments.js'))
  writeFileSync(join(folder, 'consumer.js'), text)
  return join(folder, 'consumer.js')
}

const PLAIN = `import amqp from 'amqplib'
import { CardDeclined, charge } from './payments.js'

const connection = await amqp.connect(process.env.AMQP_URL)
const channel = await connection.createChannel()
await channel.prefetch(20)

const { consumerTag } = await channel.consume(process.env.QUEUE, async (message) => {
  if (message === null) return
  try {
    await charge(JSON.parse(message.content.toString()))
    channel.ack(message)
  } catch (error) {
    console.error(\`order \${message.properties.messageId} failed\`, error.message)
    if (error instanceof CardDeclined) return channel.nack(message, false, false)
    channel.nack(message)
  }
})

process.once('SIGTERM', async () => {
  await channel.cancel(consumerTag)
  await connection.close()
})
`

test('a consumer that redrive init has changed runs on the existing queue', async () => {
  const { queue, channel, start, order, deadLetters } = await existingQueue()
  const proposal = rewriteAmqplib(PLAIN, false)
  if (proposal?.kind !== 'change') throw new Error(JSON.stringify(proposal))
  const program = start(changedFile(proposal.after))
  await order('o-1', 'good')
  await order('o-2', 'bank-away')
  await order('o-3', 'declined')
  await until('both good orders are charged', () =>
    /charged o-1[^]*charged o-2/.test(program.printed()),
  )
  await until('one dead letter', async () => {
    const { messageCount } = await channel.checkQueue(`${queue}.redrive.dlq`)
    return messageCount === 1
  })
  expect(await deadLetters(`${queue}.redrive.dlq`)).toEqual([['o-3', 'business']])
  program.kill('SIGTERM')
  expect(await program.exited).toBe(0)
})

test.each([
  ['has no reaction to SIGTERM', ''],
  [
    'closes its connection at SIGTERM',
    "process.once('SIGTERM', async () => {\n  await channel.close()\n  await connection.close()\n})\n",
  ],
])('a changed consumer that %s ends at SIGTERM', async (_, reaction) => {
  const { start, order } = await existingQueue()
  const text = PLAIN.slice(0, PLAIN.indexOf('process.once')).replace('const { consumerTag } = ', '')
  const proposal = rewriteAmqplib(text + reaction, false)
  if (proposal?.kind !== 'change') throw new Error(JSON.stringify(proposal))
  const program = start(changedFile(proposal.after))
  await order('o-1', 'good')
  await until('the order is charged', () => program.printed().includes('charged o-1'))
  program.kill('SIGTERM')
  expect(await program.exited).toBe(0)
})
