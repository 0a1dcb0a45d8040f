import { randomUUID } from 'node:crypto'
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { urlOf } from '@redrive/dev-support'
import { sqs, topologyOf } from '@redrive/sqs'
import { consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { EXIT } from '../src/exit.ts'
import { type Desk, type Group, openDesk } from './desk.ts'

interface Order {
  readonly order: number
}

/** The test server accepts any. The program reads them from the environment. */
const CREDENTIALS = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' }
const NO_CUSTOMER: unknown = expect.stringMatching(/^order \d has no customer$/)

/** Dead letters of a consumer of Redrive and of a plain one, with the command line and a real server. */
describe('Amazon SQS', () => {
  const queue = `orders-${randomUUID()}`
  const plain = `mails-${randomUUID()}`
  const plainDead = `mails-failed-${randomUUID()}`
  const { deadLetters, replayed } = topologyOf(queue)
  const handled: string[] = []
  let endpoint = ''
  let address = ''
  let isBroken = true
  let desk: Desk
  let client: SQSClient
  const urls = new Map<string, string>()
  const urlFor = (name: string) => urls.get(name) ?? ''

  const create = async (name: string, Attributes: Record<string, string> = {}) => {
    const { QueueUrl = '' } = await client.send(
      new CreateQueueCommand({ QueueName: name, Attributes }),
    )
    urls.set(name, QueueUrl)
    return QueueUrl
  }
  const send = (name: string, order: Order) =>
    client.send(
      new SendMessageCommand({ QueueUrl: urlFor(name), MessageBody: JSON.stringify(order) }),
    )
  const count = async (name: string) => {
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({
        QueueUrl: urlFor(name),
        AttributeNames: ['ApproximateNumberOfMessages'],
      }),
    )
    return Number(Attributes?.ApproximateNumberOfMessages)
  }

  function charge(source: string, { order }: Order): void {
    if (isBroken) throw new TypeError(`order ${order} has no customer`)
    handled.push(`${source} ${order}`)
  }

  /** Receives one message, and deletes it if the handler accepts it. */
  async function consumePlain(): Promise<void> {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({ QueueUrl: urlFor(plain), VisibilityTimeout: 0 }),
    )
    for (const { Body = '', ReceiptHandle } of Messages) {
      if (isBroken) continue
      charge('plain', JSON.parse(Body) as Order)
      await client.send(new DeleteMessageCommand({ QueueUrl: urlFor(plain), ReceiptHandle }))
    }
  }

  beforeAll(async () => {
    for (const [name, value] of Object.entries(CREDENTIALS)) vi.stubEnv(name, value)
    desk = await openDesk('sqs', CREDENTIALS)
    endpoint = await urlOf('elasticmq')
    address = `sqs://${new URL(endpoint).host}`
    client = new SQSClient({ endpoint, region: 'us-east-1' })
    desk.atEnd(() => client.destroy())
    await create(queue)
    await create(plainDead)
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl: urlFor(plainDead), AttributeNames: ['QueueArn'] }),
    )
    const policy = { deadLetterTargetArn: Attributes?.QueueArn, maxReceiveCount: 2 }
    await create(plain, { RedrivePolicy: JSON.stringify(policy) })
    desk.atEnd(async () => {
      for (const name of [queue, plain, plainDead, deadLetters, replayed, `${plain}-replayed`])
        await client.send(new DeleteQueueCommand({ QueueUrl: urlFor(queue).replace(queue, name) }))
    })
    const consumer = await consume(
      sqs({ client, queue, wait: '1s' }),
      ({ body }) => charge('own', body as Order),
      { logger: 'off', retry: { attempts: 1 } },
    )
    desk.atEnd(() => consumer.stop())
    urls.set(deadLetters, urlFor(queue).replace(queue, deadLetters))
    for (const order of [1, 2, 3]) await send(queue, { order })
    for (const order of [4, 5]) await send(plain, { order })
    await until('three messages are dead letters', async () => (await count(deadLetters)) === 3)
    await until('SQS moves the messages of the plain consumer', async () => {
      await consumePlain()
      return (await count(plainDead)) === 2
    })
  }, 120_000)
  afterAll(async () => {
    await desk.close()
    vi.unstubAllEnvs()
  }, 60_000)

  test('a peek groups dead letters, and takes none', async () => {
    for (let time = 0; time < 2; time++) {
      const own = await desk.json<object>('peek', address, deadLetters)
      expect(own).toMatchObject({
        total: 3,
        looked: 3,
        groups: [{ count: 3, message: NO_CUSTOMER }],
      })
      const moved = await desk.json<object>('peek', address, plainDead)
      expect(moved).toMatchObject({ total: 2, looked: 2, groups: [{ count: 2 }] })
    }
    const missing = await desk.redrive('peek', address, 'no-such-queue')
    expect(missing.stderr).toContain('SQS has no queue "no-such-queue"')
    const other = await desk.redrive('peek', address, queue)
    expect(other.stderr).toContain(`"${queue}" is not a dead-letter queue`)
    expect([missing.code, other.code]).toEqual([EXIT.notFound, EXIT.notFound])
  }, 60_000)

  test('a doctor checks the queues that the address names', async () => {
    const { code, stdout } = await desk.redrive('doctor', `${address}?queue=${plain}`)
    expect(code).toBe(EXIT.ok)
    expect(stdout).toContain('sqs.max-receives')
    expect(stdout).toContain('maxReceiveCount 2, crash limit 6')
  }, 60_000)

  test('a server groups dead letters and messages that SQS moved, and each replay is handled once', async () => {
    await desk.serve({
      own: { sqs: { queue, endpoint, region: 'us-east-1' } },
      plain: { sqs: { queue: urlFor(plain), endpoint, region: 'us-east-1' } },
    })
    const found = await until('a group for each source', desk.groups, {
      accept: (all) => all.reduce((sum, { openCount }) => sum + openCount, 0) === 5,
    })
    expect(found.map(({ source }) => source).toSorted()).toEqual(['own', 'plain'])
    expect(await count(deadLetters)).toBe(0)
    expect(await count(plainDead)).toBe(0)

    isBroken = false
    const [own, moved] = ['own', 'plain'].map((name) => found.find(({ source }) => source === name))
    const confirmed = await desk.replay(own as Group)
    expect(confirmed.code).toBe(0)
    expect(confirmed.stdout).toContain('3 resolved')
    // A plain consumer confirms nothing.
    const unproven = await desk.replay(moved as Group, '--outcome-timeout', '1s')
    expect(unproven.code).toBe(0)
    expect(unproven.stdout).toContain('2 not returned')
    await until('the plain consumer handles the replays', async () => {
      await consumePlain()
      return handled.length === 5
    })
    expect(handled.toSorted()).toEqual(['own 1', 'own 2', 'own 3', 'plain 4', 'plain 5'])
    await until('no dead letter is open', async () =>
      (await desk.groups()).every(({ openCount }) => openCount === 0),
    )
  }, 120_000)
})
