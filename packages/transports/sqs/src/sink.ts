import { headerText } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import { outgoingOf, type Outgoing } from './delivery.ts'
import { fifoId } from './fifo-id.ts'
import type { SqsEventHeaderTable } from './header-tables.ts'
import { type ResolvedSinkOptions, resolveSinkOptions, type SqsSinkOptions } from './options.ts'
import { Batcher } from './batcher.ts'
import { sizeOf } from './attributes.ts'
import { Requests } from './requests.ts'
import { RedriveError } from '@redrive/core'
import { isFifoName, isUrl, nameOf } from './topology.ts'

/** 100 events: ten requests at the same time. */
const BATCH = 100

/** A sink that sends events to queues. An event is accepted when SQS has stored it. */
export class SqsSink implements Sink {
  readonly name = 'sqs'
  readonly batch: number = BATCH
  readonly #options: ResolvedSinkOptions
  readonly #requests: Requests
  readonly #queues = new Map<string, Promise<Batcher<Outgoing>>>()

  /** @internal */
  constructor(options: ResolvedSinkOptions) {
    this.#options = options
    this.#requests = new Requests(options.client, options.timeoutMs)
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    signal.throwIfAborted()
    await Promise.all(
      events.map(async (event) => {
        const queue = this.#options.queue(event)
        const batcher = await this.#queueOf(queue)
        await batcher.add(outgoing(event, isFifoName(nameOf(queue))))
      }),
    )
  }

  async #queueOf(queue: string): Promise<Batcher<Outgoing>> {
    const known = this.#queues.get(queue) ?? this.#find(queue)
    this.#queues.set(queue, known)
    try {
      return await known
    } catch (error) {
      // The next event looks again.
      this.#queues.delete(queue)
      throw error
    }
  }

  async #find(queue: string): Promise<Batcher<Outgoing>> {
    const url = isUrl(queue) ? queue : await this.#requests.urlOf(queue)
    if (url === undefined)
      throw new RedriveError('UNROUTABLE', `SQS has no queue "${queue}". Create it.`)
    return new Batcher({
      send: (messages) => this.#requests.send(url, messages),
      sizeOf: ({ body, attributes }) => sizeOf(body, attributes),
    })
  }

  close(): Promise<void> {
    this.#options.closeClient()
    return Promise.resolve()
  }
}

function outgoing(event: OutboundEvent, isFifo: boolean): Outgoing {
  const { id, key, type, at, bytes, contentType, headers, lane } = event
  const described: Pick<SqsEventHeaderTable, 'ce-time'> = { 'ce-time': new Date(at).toISOString() }
  const own = {
    'redrive-id': headerText(id),
    ...(key === id ? {} : { 'redrive-key': headerText(key) }),
  }
  const message = outgoingOf(
    { bytes, contentType, type, headers: { ...headers, ...described } },
    {},
    own,
  )
  return isFifo ? { ...message, group: fifoId(lane ?? id), deduplicationId: fifoId(id) } : message
}

/** Creates a sink that sends events and waits until SQS has stored them. */
export function sqsSink(options: SqsSinkOptions): SqsSink {
  return new SqsSink(resolveSinkOptions(options))
}
