import type * as Sqs from '@aws-sdk/client-sqs'
import { isRecord } from '@redrive/core/internal'
import { ANSWER_MS, Reading } from '../reading.ts'
import type { SqsFacts, SqsPolicyFacts, SqsQueueFacts, SqsSourceFacts } from './facts.ts'

export interface SqsOptions {
  /** Names or URLs of the queues whose consumers use Redrive. */
  readonly queues: readonly string[]
  /** Dead-letter queues by queue, where the option `deadLetters` of the consumer names another one. */
  readonly deadLetters?: Readonly<Record<string, string>>
  /** Region of the queues. Default: from the environment. */
  readonly region?: string
  /** URL of a server with the API of SQS. Default: that of the region. */
  readonly endpoint?: string
  /** The sum of `poison.suspectDeliveries` and `poison.trials` of the policy. Default 6. */
  readonly crashLimit?: number
  /** The longest time that a handler needs, in ms. Default 30,000, the default timeout of an attempt. */
  readonly handlerTimeoutMs?: number
  /** Maximum time for one answer of the server, in ms. Default 10,000. */
  readonly timeoutMs?: number
}

/** 6: the sum of the defaults of the policy. */
const CRASH_LIMIT = 6
/** 30 s: the default timeout of an attempt. */
const HANDLER_MS = 30_000
const MS_PER_SECOND = 1_000

/** Reads the live settings of queues. Changes nothing, and does not throw when a fact cannot be read. */
export async function readSqs(options: SqsOptions): Promise<SqsFacts> {
  const { queues, crashLimit = CRASH_LIMIT, handlerTimeoutMs = HANDLER_MS } = options
  const reading = new Reading()
  const requests = await Requests.open(options)
  try {
    const sources: SqsSourceFacts[] = []
    for (const queue of queues) {
      const allow = `allow sqs:GetQueueUrl and sqs:GetQueueAttributes on ${queue} and its dead-letter queue`
      const source = await reading.fact({ what: queue, allow, hides: 'loss' }, () =>
        readSource(requests, queue, options.deadLetters?.[queue]),
      )
      if (source !== undefined) sources.push(source)
    }
    const expects = { crashLimit, handlerTimeoutMs }
    return { sources, expects, unreadable: reading.unreadable }
  } finally {
    requests.close()
  }
}

async function readSource(
  requests: Requests,
  queue: string,
  given: string | undefined,
): Promise<SqsSourceFacts> {
  const found = await requests.queue(queue)
  const name = nameOf(queue)
  if (found === undefined) return { name, queue: undefined, deadLetters: undefined }
  const target = given ?? found.target ?? deadLettersOf(name)
  const deadLetters = (await requests.queue(target))?.facts
  return { name, queue: found.facts, deadLetters }
}

const nameOf = (place: string) =>
  place.slice(Math.max(place.lastIndexOf('/'), place.lastIndexOf(':')) + 1)

/** The queue that Redrive creates without a redrive policy. */
export const deadLettersOf = (queue: string): string =>
  queue.endsWith('.fifo') ? queue.replace(/\.fifo$/, '-dlq.fifo') : `${queue}-dlq`

interface FoundQueue {
  readonly facts: SqsQueueFacts
  /** ARN of the queue that the redrive policy names. */
  readonly target: string | undefined
}

type Sdk = typeof Sqs

/** The library of Amazon is loaded only to read SQS. */
class Requests {
  readonly #sdk: Sdk
  readonly #client: Sqs.SQSClient
  readonly #timeoutMs: number

  private constructor(sdk: Sdk, client: Sqs.SQSClient, timeoutMs: number) {
    this.#sdk = sdk
    this.#client = client
    this.#timeoutMs = timeoutMs
  }

  static async open({ region, endpoint, timeoutMs = ANSWER_MS }: SqsOptions): Promise<Requests> {
    const sdk = await import('@aws-sdk/client-sqs')
    const client = new sdk.SQSClient({
      ...(region === undefined ? {} : { region }),
      ...(endpoint === undefined ? {} : { endpoint }),
    })
    return new Requests(sdk, client, timeoutMs)
  }

  close(): void {
    this.#client.destroy()
  }

  /** Returns a queue by its name, URL or ARN; undefined when it does not exist. */
  async queue(place: string): Promise<FoundQueue | undefined> {
    try {
      const url = /^https?:/.test(place) ? place : await this.#urlOf(place)
      const attributes = await this.#attributes(url)
      return foundIn(nameOf(place), url, attributes)
    } catch (error) {
      if (error instanceof this.#sdk.QueueDoesNotExist) return undefined
      throw error
    }
  }

  async #urlOf(place: string): Promise<string> {
    const account = place.startsWith('arn:') ? place.split(':')[4] : undefined
    const command = new this.#sdk.GetQueueUrlCommand({
      QueueName: nameOf(place),
      ...(account === undefined ? {} : { QueueOwnerAWSAccountId: account }),
    })
    return (await this.#client.send(command, this.#within())).QueueUrl ?? ''
  }

  async #attributes(url: string): Promise<Readonly<Record<string, string>>> {
    const command = new this.#sdk.GetQueueAttributesCommand({
      QueueUrl: url,
      AttributeNames: ['All'],
    })
    return (await this.#client.send(command, this.#within())).Attributes ?? {}
  }

  #within() {
    return { abortSignal: AbortSignal.timeout(this.#timeoutMs) }
  }
}

function foundIn(
  name: string,
  url: string,
  attributes: Readonly<Record<string, string>>,
): FoundQueue {
  const number = (key: string) =>
    attributes[key] === undefined ? undefined : Number(attributes[key])
  const ms = (key: string) => {
    const seconds = number(key)
    return seconds === undefined ? undefined : seconds * MS_PER_SECOND
  }
  const { target, policy } = policyIn(attributes['RedrivePolicy'])
  return {
    target,
    facts: {
      name,
      url,
      retentionMs: ms('MessageRetentionPeriod'),
      visibilityMs: ms('VisibilityTimeout'),
      maxBytes: number('MaximumMessageSize'),
      isDeduplicatedByBody: attributes['ContentBasedDeduplication'] === 'true',
      policy,
    },
  }
}

function policyIn(text: string | undefined): {
  readonly target: string | undefined
  readonly policy: SqsPolicyFacts | undefined
} {
  const found: unknown = text === undefined ? undefined : JSON.parse(text)
  const target = isRecord(found) ? found['deadLetterTargetArn'] : undefined
  if (!isRecord(found) || typeof target !== 'string')
    return { target: undefined, policy: undefined }
  const maxReceives = Number(found['maxReceiveCount'])
  return { target, policy: { deadLetters: nameOf(target), maxReceives } }
}
