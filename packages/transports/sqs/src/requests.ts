import { RedriveError } from '@redrive/core'
import {
  type BatchResultErrorEntry,
  ChangeMessageVisibilityBatchCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListDeadLetterSourceQueuesCommand,
  type QueueAttributeName,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSServiceException,
} from '@aws-sdk/client-sqs'
import { type Outgoing, type ReceivedMessage, toReceived } from './delivery.ts'
import type { SqsClient } from './options.ts'

/** The limit of SQS for entries in a batch, and for messages in a response. */
export const MAX_ENTRIES = 10
const MS_PER_SECOND = 1_000

/** The result of one entry of a batch. Undefined: done. */
export type EntryResult = RedriveError | undefined

export interface ReceiveOptions {
  readonly most: number
  readonly waitMs: number
  readonly leaseMs: number
}

/** A message that no consumer receives for some time. */
export interface HiddenMessage {
  readonly receiptHandle: string
  readonly forMs: number
}

/** The requests of Redrive. Each one has a timeout, and its error states whether SQS has done it. */
export class Requests {
  readonly #client: SqsClient
  readonly #timeoutMs: number

  constructor(client: SqsClient, timeoutMs: number) {
    this.#client = client
    this.#timeoutMs = timeoutMs
  }

  async receive(
    url: string,
    { most, waitMs, leaseMs }: ReceiveOptions,
  ): Promise<readonly ReceivedMessage[]> {
    const command = new ReceiveMessageCommand({
      QueueUrl: url,
      MaxNumberOfMessages: Math.min(most, MAX_ENTRIES),
      WaitTimeSeconds: Math.floor(waitMs / MS_PER_SECOND),
      VisibilityTimeout: secondsOf(leaseMs),
      MessageAttributeNames: ['All'],
      MessageSystemAttributeNames: ['All'],
    })
    const { Messages = [] } = await this.#run(
      url,
      (options) => this.#client.send(command, options),
      { timeoutMs: waitMs + this.#timeoutMs },
    )
    return Messages.map(toReceived)
  }

  /** Sends up to ten messages. */
  async send(url: string, messages: readonly Outgoing[]): Promise<readonly EntryResult[]> {
    const Entries = messages.map((message, index) => ({
      Id: String(index),
      MessageBody: message.body,
      MessageAttributes: message.attributes,
      ...(message.delaySeconds === undefined ? {} : { DelaySeconds: message.delaySeconds }),
      ...(message.group === undefined ? {} : { MessageGroupId: message.group }),
      ...(message.deduplicationId === undefined
        ? {}
        : { MessageDeduplicationId: message.deduplicationId }),
    }))
    const command = new SendMessageBatchCommand({ QueueUrl: url, Entries })
    const { Failed } = await this.#run(url, (options) => this.#client.send(command, options))
    return resultsOf(url, messages.length, Failed)
  }

  /** Deletes up to ten messages. */
  async delete(url: string, handles: readonly string[]): Promise<readonly EntryResult[]> {
    const Entries = handles.map((ReceiptHandle, index) => ({ Id: String(index), ReceiptHandle }))
    const command = new DeleteMessageBatchCommand({ QueueUrl: url, Entries })
    const { Failed } = await this.#run(url, (options) => this.#client.send(command, options))
    return resultsOf(url, handles.length, Failed).map(withOwnership)
  }

  /** Sets when up to ten messages are available again, from now on. */
  async hide(
    url: string,
    messages: readonly HiddenMessage[],
    timeoutMs: number = this.#timeoutMs,
  ): Promise<readonly EntryResult[]> {
    const Entries = messages.map(({ receiptHandle, forMs }, index) => ({
      Id: String(index),
      ReceiptHandle: receiptHandle,
      VisibilityTimeout: secondsOf(forMs),
    }))
    const command = new ChangeMessageVisibilityBatchCommand({ QueueUrl: url, Entries })
    const { Failed } = await this.#run(url, (options) => this.#client.send(command, options), {
      timeoutMs: Math.min(timeoutMs, this.#timeoutMs),
    })
    return resultsOf(url, messages.length, Failed).map(withOwnership)
  }

  /** Makes up to ten messages available again. */
  show(url: string, handles: readonly string[]): Promise<readonly EntryResult[]> {
    return this.hide(
      url,
      handles.map((receiptHandle) => ({ receiptHandle, forMs: 0 })),
    )
  }

  /** Returns the address of a queue of an account, by default that of the caller; undefined when it does not exist. */
  async urlOf(name: string, account?: string): Promise<string | undefined> {
    const command = new GetQueueUrlCommand({
      QueueName: name,
      ...(account === undefined ? {} : { QueueOwnerAWSAccountId: account }),
    })
    try {
      return (await this.#run(name, (options) => this.#client.send(command, options))).QueueUrl
    } catch (error) {
      if (isMissingQueue(error)) return undefined
      throw error
    }
  }

  async attributes(
    url: string,
    names: readonly QueueAttributeName[],
  ): Promise<Readonly<Partial<Record<QueueAttributeName, string>>>> {
    const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: [...names] })
    const { Attributes = {} } = await this.#run(url, (options) =>
      this.#client.send(command, options),
    )
    return Attributes
  }

  async create(name: string, attributes: Record<string, string>): Promise<string> {
    const command = new CreateQueueCommand({ QueueName: name, Attributes: attributes })
    const { QueueUrl = '' } = await this.#run(name, (options) =>
      this.#client.send(command, options),
    )
    return QueueUrl
  }

  /** Returns the addresses of the queues whose redrive policy names this queue, at most 1,000. */
  async deadLetterSources(url: string): Promise<readonly string[]> {
    const command = new ListDeadLetterSourceQueuesCommand({ QueueUrl: url, MaxResults: 1_000 })
    const { queueUrls = [] } = await this.#run(url, (options) =>
      this.#client.send(command, options),
    )
    return queueUrls
  }

  async #run<T>(
    queue: string,
    request: (options: { readonly abortSignal: AbortSignal }) => Promise<T>,
    { timeoutMs = this.#timeoutMs }: { readonly timeoutMs?: number } = {},
  ): Promise<T> {
    try {
      return await request({ abortSignal: AbortSignal.timeout(Math.ceil(timeoutMs)) })
    } catch (cause) {
      throw failed(queue, cause)
    }
  }
}

const secondsOf = (ms: number) => Math.ceil(ms / MS_PER_SECOND)

const resultsOf = (
  queue: string,
  count: number,
  failures: readonly BatchResultErrorEntry[] | undefined,
): readonly EntryResult[] => {
  const byId = new Map((failures ?? []).map((failure) => [failure.Id, failure]))
  return Array.from({ length: count }, (_, index) => {
    const failure = byId.get(String(index))
    return failure === undefined ? undefined : refusedEntry(queue, failure)
  })
}

/** The code of SQS of a request or an entry that it rejected. */
const CODE = Symbol('code of SQS')

const refused = (queue: string, code: string, why: string, cause?: unknown) =>
  Object.assign(
    new RedriveError('REFUSED', `SQS rejected a request for "${queue}": ${code}: ${why}`, {
      cause,
    }),
    { [CODE]: code },
  )

const refusedEntry = (
  queue: string,
  { Code = 'unknown', Message = 'no reason' }: BatchResultErrorEntry,
) => refused(queue, Code, Message)

/** A response below 500 states that SQS has done nothing. Without it, or after an error of the server, that is unknown. */
function failed(queue: string, cause: unknown): RedriveError {
  if (cause instanceof SQSServiceException) {
    const { httpStatusCode = 500 } = cause.$metadata
    if (httpStatusCode < 500) return refused(queue, cause.name, cause.message, cause)
  }
  const why = cause instanceof Error ? cause.message || cause.name : String(cause)
  return new RedriveError(
    'OUTCOME_UNKNOWN',
    `SQS did not confirm a request for "${queue}": ${why}. It may or may not be done.`,
    { cause },
  )
}

const codeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && CODE in error ? error[CODE] : undefined

/** Both protocols of the SDK have their own name. */
const MISSING_QUEUE = ['QueueDoesNotExist', 'AWS.SimpleQueueService.NonExistentQueue']

export const isMissingQueue = (error: unknown): boolean =>
  MISSING_QUEUE.includes(String(codeOf(error)))

/** Codes for a receipt handle that does not own its message: the lease has ended, or the message is deleted. */
const NOT_OWNED: readonly unknown[] = [
  'ReceiptHandleIsInvalid',
  'MessageNotInflight',
  'AWS.SimpleQueueService.MessageNotInflight',
  // FIFO queues.
  'InvalidParameterValue',
]

const OWNERSHIP = Symbol('the receipt handle does not own its message')

const withOwnership = (result: EntryResult): EntryResult =>
  result !== undefined && NOT_OWNED.includes(codeOf(result))
    ? Object.assign(result, { [OWNERSHIP]: true })
    : result

/** Returns whether another consumer may own the message. */
export const isNotOwned = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && OWNERSHIP in error
