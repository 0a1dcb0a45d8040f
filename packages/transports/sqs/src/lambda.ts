import type { Decision } from '@redrive/core'
import { readOptions } from '@redrive/core/internal'
import {
  type Capabilities,
  type Consumer,
  type Enactment,
  LOST,
  type Receiver,
  type Transport,
  type TransportNeeds,
} from '@redrive/runtime'
import { isUnfinished } from '@redrive/runtime/internal'
import { capabilitiesOf } from './capabilities.ts'
import { declareQueues } from './declare.ts'
import { contentOf, type SqsDelivery, toReceived } from './delivery.ts'
import { HandOffs } from './enact.ts'
import { Lanes } from './lanes.ts'
import { readQueue, type ResolvedSourceOptions, type SqsHandlerOptions } from './options.ts'
import { Requests } from './requests.ts'
import { topologyOf } from './topology.ts'

/** A message in an event of AWS Lambda. */
export interface SqsRecord {
  readonly messageId: string
  readonly receiptHandle: string
  readonly body: string
  readonly attributes: Readonly<Record<string, string | undefined>>
  readonly messageAttributes: Readonly<Record<string, SqsRecordAttribute>>
}

export interface SqsRecordAttribute {
  readonly dataType: string
  readonly stringValue?: string | undefined
  /** Base64. */
  readonly binaryValue?: string | undefined
}

/** The part of an event of AWS Lambda that Redrive reads. */
export interface SqsEvent {
  readonly Records: readonly SqsRecord[]
}

/** The part of a context of AWS Lambda that Redrive reads. */
export interface LambdaContext {
  getRemainingTimeInMillis(): number
}

/** A partial batch response: Lambda deletes the other messages. */
export interface SqsBatchResponse {
  readonly batchItemFailures: readonly { readonly itemIdentifier: string }[]
}

/** 1 s before Lambda ends the process: time to report the messages that are not finished. */
const MARGIN_MS = 1_000
/** The longest timeout of a function: 15 minutes. Without a context, no event takes longer. */
const LONGEST_MS = 900_000

type Finish = (isDone: boolean) => void

/** A transport for the messages of events. Lambda receives and deletes them. */
class LambdaTransport implements Transport<SqsDelivery> {
  readonly source: string
  readonly system = 'aws.sqs'
  readonly capabilities: Capabilities
  readonly #options: ResolvedSourceOptions & { readonly unwrapSns: boolean }
  readonly #unfinished = new Map<SqsDelivery, Finish>()
  readonly #lanes = new Lanes()
  /** Messages that wait for a free slot. */
  #waiting: SqsDelivery[] = []
  #running = 0
  #limit = 1
  #isPaused = false
  #handOffs: HandOffs | undefined
  #receiver: Receiver<SqsDelivery> | undefined

  constructor(options: ResolvedSourceOptions & { readonly unwrapSns: boolean }) {
    const { queue, isFifo } = topologyOf(options.queue)
    this.#options = options
    this.source = queue
    // Lambda returns messages in place, and SQS counts that like a crash.
    this.capabilities = { ...capabilitiesOf(isFifo), deliveryCount: 'none' }
  }

  async open(needs?: TransportNeeds): Promise<void> {
    const requests = new Requests(this.#options.client, this.#options.timeoutMs)
    const topology = topologyOf(this.#options.queue)
    const queues = await declareQueues(requests, {
      ...this.#options,
      deadLetterRetentionMs: needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY,
      mustExist: true,
    })
    this.#handOffs = new HandOffs({
      queues,
      topology,
      isReturnedInPlace: true,
      handler: needs?.handler,
      isOwned: (delivery) => this.#unfinished.has(delivery),
      send: async (url, message) => {
        const [error] = await requests.send(url, [message])
        if (error !== undefined) throw error
      },
      // Lambda deletes the messages that the response does not name.
      release: () => Promise.resolve(),
      show: (delivery) => {
        this.#end(delivery, false)
        return Promise.resolve()
      },
    })
  }

  receive(receiver: Receiver<SqsDelivery>): void {
    this.#receiver = receiver
  }

  /** Handles the messages of an event. Returns the ids of the messages that Lambda must not delete. */
  async run(records: readonly SqsRecord[], deadlineMs: number): Promise<readonly string[]> {
    const deliveries = records.map((record) => this.#toDelivery(record))
    const ends = deliveries.map(
      (delivery) => new Promise<boolean>((resolve) => this.#unfinished.set(delivery, resolve)),
    )
    const deadline = setTimeout(() => deliveries.forEach((one) => this.#lose(one)), deadlineMs)
    for (const delivery of deliveries) if (this.#lanes.add(delivery)) this.#waiting.push(delivery)
    this.#deliver()
    const areDone = await Promise.all(ends)
    clearTimeout(deadline)
    return deliveries.flatMap(({ message }, index) => (areDone[index] ? [] : message.messageId))
  }

  #toDelivery(record: SqsRecord): SqsDelivery {
    const { isFifo } = topologyOf(this.#options.queue)
    const message = toReceived({
      MessageId: record.messageId,
      ReceiptHandle: record.receiptHandle,
      Body: record.body,
      Attributes: Object.fromEntries(
        Object.entries(record.attributes).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, value]],
        ),
      ),
      MessageAttributes: Object.fromEntries(
        Object.entries(record.messageAttributes).map(([name, attribute]) => [
          name,
          toAttribute(attribute),
        ]),
      ),
    })
    const { unwrapSns } = this.#options
    return { ...contentOf(message, { source: this.source, isFifo, unwrapSns }), deliveryCount: 1 }
  }

  #deliver(): void {
    // While consumption is paused, Lambda returns the messages after their visibility timeout.
    if (this.#isPaused) for (const delivery of this.#waiting.splice(0)) this.#end(delivery, false)
    while (this.#running < this.#limit) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      this.#running += 1
      this.#receiver?.deliver(next)
    }
  }

  async enact(delivery: SqsDelivery, decision: Decision): Promise<Enactment> {
    if (this.#handOffs === undefined || !this.#unfinished.has(delivery)) return LOST
    const enactment = await this.#handOffs.enact(delivery, decision)
    if (!isUnfinished(enactment)) this.#end(delivery, enactment.kind === 'done')
    return enactment
  }

  /** Reports a message that is not finished in time. */
  #lose(delivery: SqsDelivery): void {
    if (!this.#unfinished.has(delivery)) return
    this.#end(delivery, false)
    this.#receiver?.lost(delivery)
  }

  #end(delivery: SqsDelivery, isDone: boolean): void {
    const finish = this.#unfinished.get(delivery)
    if (finish === undefined) return
    this.#unfinished.delete(delivery)
    const waited = this.#waiting.indexOf(delivery)
    if (waited >= 0) this.#waiting.splice(waited, 1)
    else this.#running = Math.max(0, this.#running - 1)
    finish(isDone)
    if (isDone) {
      const next = this.#lanes.finish(delivery)
      if (next !== undefined) this.#waiting.push(next)
    } else {
      // Later messages of its group must not overtake it.
      for (const one of this.#lanes.lose(delivery)) {
        this.#unfinished.get(one)?.(false)
        this.#unfinished.delete(one)
      }
    }
    this.#deliver()
  }

  limit(count: number): void {
    this.#limit = count
    this.#deliver()
  }

  pause(): void {
    this.#isPaused = true
    this.#deliver()
  }

  resume(): void {
    this.#isPaused = false
    this.#deliver()
  }

  close(): Promise<void> {
    for (const delivery of [...this.#unfinished.keys()]) this.#end(delivery, false)
    this.#receiver = undefined
    this.#options.closeClient()
    return Promise.resolve()
  }
}

const toAttribute = ({ dataType, stringValue, binaryValue }: SqsRecordAttribute) => ({
  DataType: dataType,
  StringValue: stringValue,
  ...(binaryValue === undefined ? {} : { BinaryValue: Buffer.from(binaryValue, 'base64') }),
})

/**
 * Creates a handler for AWS Lambda. Its response is a partial batch response: `ReportBatchItemFailures` must be enabled.
 * Pass a function that starts a consumer on the transport. It is called with the first event, and the consumer stays.
 */
export function sqsHandler(
  options: SqsHandlerOptions,
  start: (transport: Transport) => Promise<Consumer>,
): (event: SqsEvent, context?: LambdaContext) => Promise<SqsBatchResponse> {
  const transport = new LambdaTransport(
    readOptions('sqsHandler()', options, (top) => ({
      ...readQueue(top),
      unwrapSns: top.boolean('unwrapSns', false),
    })),
  )
  let starting: Promise<Consumer> | undefined
  return async ({ Records }, context) => {
    starting ??= start(transport)
    try {
      await starting
    } catch (error) {
      // The next event starts it again.
      starting = undefined
      throw error
    }
    // The process was stopped since the last event: timers that are due run first, such as the end of a pause.
    await new Promise<void>((resolve) => setImmediate(resolve))
    const remainingMs = context?.getRemainingTimeInMillis() ?? LONGEST_MS
    const failed = await transport.run(Records, Math.max(0, remainingMs - MARGIN_MS))
    return { batchItemFailures: failed.map((itemIdentifier) => ({ itemIdentifier })) }
  }
}
