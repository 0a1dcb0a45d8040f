import {
  type BaseOptions,
  type CallbackWithPromise,
  kOptions,
  type MessageToProduce,
  type ProduceOptions,
  Producer,
  type ProducerInfo,
} from '@platformatic/kafka'
import { missingNoBroker } from './protocol/client.ts'

/** Retries of one batch. The broker recognises repeated requests, so they create no duplicates. */
const RETRIES = 3
const RETRY_MS = 200

export type Message = MessageToProduce<Buffer, Buffer, Buffer, Buffer>
export type KafkaProducer = Producer<Buffer, Buffer, Buffer, Buffer>

export function producerOf(
  options: BaseOptions,
  {
    retries = RETRIES,
    ...own
  }: { readonly transactionalId?: string; readonly retries?: number } = {},
): KafkaProducer {
  const created: KafkaProducer = new Producer({
    ...options,
    ...own,
    idempotent: true,
    autocreateTopics: false,
    retryDelay: RETRY_MS,
  })
  const producer = missingNoBroker(created)
  // By default it would retry forever, and not report which records were stored.
  producer[kOptions].retries = retries
  // No producer id is assigned yet. The default 0 is the id of another producer, and with a known transactional id it is fenced.
  producer[kOptions].producerId = -1n
  producer[kOptions].producerEpoch = -1
  return own.transactionalId === undefined ? initialiseOnce(producer) : producer
}

const SEQUENCE_REJECTED =
  'Kafka rejected the sequence numbers of a request, so it is unknown which records are stored. A new producer sends them again.'

/**
 * Lets a producer initialise only once. A broker recognises repeated requests by sequence numbers. After a gap
 * in them, the client library silently takes new ones and sends everything again, even stored records. Here,
 * this is a normal error: the caller decides, and a new producer is used.
 */
function initialiseOnce(producer: KafkaProducer): KafkaProducer {
  const initialise = producer.initIdempotentProducer.bind(producer)
  let isInitialised = false
  producer.initIdempotentProducer = ((
    options: ProduceOptions<Buffer, Buffer, Buffer, Buffer>,
    callback: CallbackWithPromise<ProducerInfo>,
  ) => {
    if (isInitialised) return callback(new Error(SEQUENCE_REJECTED))
    initialise(options, (error, info) => {
      isInitialised ||= error === null
      callback(error, info)
    })
  }) as KafkaProducer['initIdempotentProducer']
  return producer
}

/** Closes a producer. Errors are ignored: a lost connection is closed already. */
export const closing = (producer: KafkaProducer): Promise<void> =>
  producer.close(true).catch(() => undefined)

/** Clears metadata without the partition of a message. With outdated metadata, the client library uses another partition. */
export function forgetIfOutdated(producer: KafkaProducer, messages: readonly Message[]): void {
  const topics = producer.currentMetadata?.topics
  const isUnknown = ({ topic, partition = 0 }: Message) =>
    partition >= (topics?.get(topic)?.partitionsCount ?? Number.POSITIVE_INFINITY)
  if (messages.some(isUnknown)) producer.clearMetadata()
}
