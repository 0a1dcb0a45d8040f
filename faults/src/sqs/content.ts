import {
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  ListQueuesCommand,
  type Message,
  ReceiveMessageCommand,
} from '@aws-sdk/client-sqs'
import type { FoundMessage, Place } from '../evidence/evidence.ts'
import { isAsSent } from '../evidence/message.ts'
import type { BrokerContent, Depths } from '../harness/broker-server.ts'
import { repeated } from '../harness/wait.ts'
import { BACK, type Broker } from './broker.ts'
import type { SqsWorld } from './world.ts'

/** Queues of Redrive have the name of the source at the beginning. */
async function queuesOf({ client }: Broker, run: string): Promise<readonly string[]> {
  const { QueueUrls = [] } = await client.send(
    new ListQueuesCommand({ QueueNamePrefix: run, MaxResults: 1_000 }),
  )
  return QueueUrls.filter((url) => !url.endsWith('-replayed'))
}

/** Sources before dead letters: a message that moves is then counted twice, and never missed. */
const inTurn = (urls: readonly string[]) => urls.toSorted((a, b) => a.length - b.length)

const isDead = (url: string) => url.endsWith('-dlq')

interface Count {
  readonly due: number
  readonly delayed: number
}

async function countOf({ client }: Broker, url: string): Promise<Count> {
  const { Attributes = {} } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] }),
  )
  const due =
    Number(Attributes.ApproximateNumberOfMessages) +
    Number(Attributes.ApproximateNumberOfMessagesNotVisible)
  return { due, delayed: Number(Attributes.ApproximateNumberOfMessagesDelayed) }
}

/** Counts without reading a message. A count cannot distinguish quarantine from other dead letters. */
async function depths({ broker, run, expected }: SqsWorld): Promise<Depths> {
  let [source, delay, dead] = [0, 0, 0]
  for (const url of inTurn(await queuesOf(broker, run))) {
    const { due, delayed } = await countOf(broker, url)
    delay += delayed
    if (isDead(url)) dead += due
    else source += due
  }
  const quarantine = Math.min(dead, expected.quarantine)
  return { source, delay, dlq: dead - quarantine, quarantine }
}

async function found({ broker, run }: SqsWorld): Promise<readonly FoundMessage[]> {
  const urls = inTurn(await repeated(() => queuesOf(broker, run), BACK))
  const all: FoundMessage[] = []
  for (const url of urls) all.push(...(await contentOf(broker, url)))
  return all
}

/** 10 min: no message is read twice. */
const HIDDEN_S = 600
/** 3 s, longer than the longest delay of these scenarios. */
const DELAY_S = 3

/** Takes all messages of a queue. No consumer runs any more. */
async function contentOf(broker: Broker, url: string): Promise<readonly FoundMessage[]> {
  const all: FoundMessage[] = []
  for (;;) {
    const { delayed } = await repeated(() => countOf(broker, url), BACK)
    const receive = new ReceiveMessageCommand({
      QueueUrl: url,
      MaxNumberOfMessages: 10,
      VisibilityTimeout: HIDDEN_S,
      WaitTimeSeconds: delayed > 0 ? DELAY_S : 0,
      MessageAttributeNames: ['All'],
    })
    const { Messages = [] } = await repeated(() => broker.client.send(receive), BACK)
    if (Messages.length === 0) return all
    all.push(...Messages.map((message) => foundIn(url, message)))
  }
}

function foundIn(url: string, { Body = '', MessageAttributes = {} }: Message): FoundMessage {
  const text = MessageAttributes['redrive']?.StringValue ?? '{}'
  const own = JSON.parse(text) as Readonly<Record<string, string>>
  const id = own['redrive-id'] ?? MessageAttributes['redrive-id']?.StringValue ?? ''
  return {
    id,
    queue: url.slice(url.lastIndexOf('/') + 1),
    place: placeOf(url, own),
    reason: own['redrive-reason'],
    isWhole: isAsSent(id, Buffer.from(Body)),
  }
}

function placeOf(url: string, own: Readonly<Record<string, string>>): Place {
  if (!isDead(url)) return 'source'
  return own['redrive-quarantined'] === undefined ? 'dlq' : 'quarantine'
}

async function remove({ broker: { client }, run }: SqsWorld): Promise<void> {
  const { QueueUrls = [] } = await client.send(
    new ListQueuesCommand({ QueueNamePrefix: run, MaxResults: 1_000 }),
  )
  for (const QueueUrl of QueueUrls) await client.send(new DeleteQueueCommand({ QueueUrl }))
}

export const CONTENT: BrokerContent<SqsWorld> = { depths, found, remove }
