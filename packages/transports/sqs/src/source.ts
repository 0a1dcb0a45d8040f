import { decodeHeaders, encodeHeaders, headerText, RedriveError } from '@redrive/core'
import {
  type ConfirmationBatch,
  type DeadLetterSource,
  type DrainedBatch,
  type DrainedDeadLetter,
  type DrainedQueue,
  parseConfirmation,
  type ReplayMessage,
} from '@redrive/runtime'
import type { Headers } from './attributes.ts'
import { type DeclaredQueues, declareQueues } from './declare.ts'
import {
  contentOf,
  envelopeOf,
  type Outgoing,
  outgoingOf,
  QUARANTINED,
  type ReceivedMessage,
  replayOf,
} from './delivery.ts'
import { type Batch, take } from './drain.ts'
import { fifoId } from './fifo-id.ts'
import { nativeDeathOf } from './foreign.ts'
import {
  type ResolvedSourceOptions,
  resolveSourceOptions,
  type SqsSourceOptions,
} from './options.ts'
import { MAX_ENTRIES, Requests } from './requests.ts'
import { isFifoName, nameOf, type Topology, topologyOf } from './topology.ts'

/** 14 days, the limit of SQS: a dead letter waits for the control plane as long as possible. */
const RETENTION_MS = 1_209_600_000

/** The control plane's access to a queue: drains its dead letters, publishes replays and reads their confirmations. */
export class SqsSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: ResolvedSourceOptions
  readonly #topology: Topology
  readonly #requests: Requests
  readonly #batches = new Set<Batch>()
  #declaring: Promise<DeclaredQueues> | undefined

  /** @internal */
  constructor(options: ResolvedSourceOptions) {
    this.#options = options
    this.#topology = topologyOf(options.queue)
    this.source = this.#topology.queue
    this.#requests = new Requests(options.client, options.timeoutMs)
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const { deadLetters: url, maxReceives } = await this.#queues()
    if (url === undefined) return { deadLetters: [], ...NOTHING }
    const batch = await this.#take(url, limit)
    return {
      deadLetters: batch.messages.map((message) => this.#read(message, maxReceives)),
      ...this.#endActions(batch),
    }
  }

  async confirmations({ limit }: { readonly limit: number }): Promise<ConfirmationBatch> {
    const { replayed: url } = await this.#queues()
    if (url === undefined) return { confirmations: [], ...NOTHING }
    const batch = await this.#take(url, limit)
    // Unreadable ones are released, too, because they stay unreadable.
    const confirmations = batch.messages.flatMap(
      ({ body }) => parseConfirmation(Buffer.from(body)) ?? [],
    )
    return { confirmations, ...this.#endActions(batch) }
  }

  async #take(url: string, limit: number): Promise<Batch> {
    const batch = await take(this.#requests, url, limit)
    this.#batches.add(batch)
    return batch
  }

  /** Returns the two actions that end a batch. `close` ends open batches. */
  #endActions(batch: Batch): Pick<DrainedBatch, 'release' | 'abandon'> {
    return {
      release: async () => {
        this.#batches.delete(batch)
        await batch.release()
      },
      abandon: async () => {
        await batch.abandon()
        this.#batches.delete(batch)
      },
    }
  }

  #read(message: ReceivedMessage, maxReceives: number | undefined): DrainedDeadLetter {
    const { isFifo } = this.#topology
    const { source: recorded, reason: stored, handler, stack } = decodeHeaders(message.own)
    const { message: _, ...read } = contentOf(message, { source: this.source, isFifo })
    // What SQS knows is newer than the headers: a retry, and a producer, can have written them.
    const death = nativeDeathOf(message, read.cycle, maxReceives)
    const origin = death?.origin ?? recorded ?? this.source
    const cycle = death?.cycle ?? read.cycle
    const reason = death === undefined ? stored : MAX_RECEIVES
    const delivery = { ...read, cycle, source: origin, deliveryCount: 1 }
    // SQS forgets where a message died, when it is put back.
    const own = death === undefined ? {} : encodeHeaders({ ...delivery, reason }).headers
    return {
      delivery,
      origin,
      envelope: envelopeOf(message, { ...message.own, ...own }),
      quarantined: message.own[QUARANTINED] !== undefined,
      class: cycle.history.at(-1)?.class ?? 'unknown',
      reason: reason ?? 'unknown',
      identity: 'stable',
      ...(handler === undefined ? {} : { handler }),
      ...(stack === undefined ? {} : { stack }),
    }
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const url = await this.#originOf(deadLetter)
    const message = replayOf(deadLetter, replayId)
    await this.#sendAll(url, [
      isFifoName(nameOf(url)) ? inGroup(message, deadLetter, `replay:${replayId}`) : message,
    ])
  }

  /** Returns the queue of a replay. A dead-letter queue can belong to several queues; no message names any other one. */
  async #originOf({ origin }: DrainedDeadLetter): Promise<string> {
    const { url, deadLetters } = await this.#queues()
    if (origin === this.source) return url
    const others =
      deadLetters === undefined ? [] : await this.#requests.deadLetterSources(deadLetters)
    const found = others.find((other) => nameOf(other) === origin)
    if (found !== undefined) return found
    throw new RedriveError(
      'UNROUTABLE',
      `The dead letter comes from the queue "${origin}", whose redrive policy does not name this dead-letter queue. Correct the policy, then repeat.`,
    )
  }

  /** Sends dead letters to their queue again, with the same body and attributes. */
  async putBack(all: readonly DrainedDeadLetter[]): Promise<void> {
    const { deadLetters: url } = await this.#queues()
    if (url === undefined) throw new RedriveError('TOPOLOGY_MISMATCH', noQueue(this.#topology))
    const messages = all.map((one) => {
      const { deadLetterHeaders = '{}', messageId = one.delivery.id } = one.envelope
      const own = {
        ...(JSON.parse(deadLetterHeaders) as Headers),
        'redrive-id': headerText(one.delivery.id),
        'redrive-source': headerText(one.origin),
      }
      const message = outgoingOf(one.delivery, one.envelope, own)
      // A message that is drained again is another one of SQS, which must not drop it as a duplicate.
      return this.#topology.isFifo ? inGroup(message, one, `back:${messageId}`) : message
    })
    for (let i = 0; i < messages.length; i += MAX_ENTRIES)
      await this.#sendAll(url, messages.slice(i, i + MAX_ENTRIES))
  }

  async #sendAll(url: string, messages: readonly Outgoing[]): Promise<void> {
    const results = await this.#requests.send(url, messages)
    const failure = results.find((result) => result !== undefined)
    if (failure !== undefined) throw failure
  }

  async depth(): Promise<number> {
    const { deadLetters } = await this.#queues()
    return deadLetters === undefined ? 0 : this.#count(deadLetters, ALL)
  }

  async queues(): Promise<readonly DrainedQueue[]> {
    const { deadLetters } = await this.#queues()
    if (deadLetters === undefined) return [{ name: this.#topology.deadLetters, depth: undefined }]
    return [{ name: nameOf(deadLetters), depth: await this.#count(deadLetters, ALL) }]
  }

  /** Returns the number of messages that consumers could handle now, or handle now. Amazon counts approximately. */
  async lag(): Promise<number> {
    return this.#count((await this.#queues()).url, DUE)
  }

  async #count(url: string, names: readonly CountName[]): Promise<number> {
    const counts = await this.#requests.attributes(url, names)
    return names.reduce((sum, name) => sum + Number(counts[name] ?? 0), 0)
  }

  async #queues(): Promise<DeclaredQueues> {
    this.#declaring ??= declareQueues(this.#requests, {
      ...this.#options,
      deadLetterRetentionMs: RETENTION_MS,
      mustExist: false,
    })
    try {
      const queues = await this.#declaring
      // A consumer may create the queues later.
      if (queues.deadLetters === undefined || queues.replayed === undefined)
        this.#declaring = undefined
      return queues
    } catch (error) {
      this.#declaring = undefined
      throw error
    }
  }

  async close(): Promise<void> {
    // Messages that are not returned become available when their lease ends.
    await Promise.allSettled([...this.#batches].map((batch) => batch.abandon()))
    this.#batches.clear()
    this.#options.closeClient()
  }
}

type CountName =
  | 'ApproximateNumberOfMessages'
  | 'ApproximateNumberOfMessagesNotVisible'
  | 'ApproximateNumberOfMessagesDelayed'

const DUE: readonly CountName[] = [
  'ApproximateNumberOfMessages',
  'ApproximateNumberOfMessagesNotVisible',
]
const ALL: readonly CountName[] = [...DUE, 'ApproximateNumberOfMessagesDelayed']

const MAX_RECEIVES = 'max_receives'

const NOTHING = { release: () => Promise.resolve(), abandon: () => Promise.resolve() }

/** A message of a FIFO queue. Without a group of its producer, it gets a new group: it blocks no other message. */
const inGroup = (
  message: Outgoing,
  { delivery }: DrainedDeadLetter,
  deduplicationId: string,
): Outgoing => ({
  ...message,
  group: message.group ?? fifoId(delivery.id),
  deduplicationId: fifoId(deduplicationId),
})

const noQueue = ({ deadLetters }: Topology) =>
  `SQS has no dead-letter queue "${deadLetters}". Start a consumer, or create the queue.`

/** Creates the control plane's access to the dead letters of a queue, of Redrive or of another program. */
export function sqsSource(options: SqsSourceOptions): SqsSource {
  return new SqsSource(resolveSourceOptions(options))
}
