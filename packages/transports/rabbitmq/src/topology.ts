import { FAILURE_CLASSES, type FailureClass, formatDuration } from '@redrive/core'

/** Returns the name of the dead-letter exchange; the prefix is the name of the source queue by default. The functions below name the queues. */
export const deadLetterExchange = (prefix: string): string => `${prefix}.dlx`
export const deadLetterQueue = (prefix: string): string => `${prefix}.dlq`
export const quarantineQueue = (prefix: string, failureClass: FailureClass): string =>
  `${prefix}.dlq.quarantine.${failureClass}`
/** Returns the name of the queue for replay confirmations, which the control plane reads. */
export const replayedQueue = (prefix: string): string => `${prefix}.replayed`
export const delayQueue = (prefix: string, stepMs: number): string =>
  `${prefix}.delay.${formatDuration(stepMs)}`
/** Returns the prefix of the queues next to an adopted queue, which may have a dead-letter queue with the usual name. */
export const adoptedPrefix = (queue: string): string => `${queue}.redrive`

/**
 * The delay steps: one queue per step. The step is the time to live of the whole queue, so that no message
 * waits behind one with a longer delay. The number is small because these queues must never expire: the
 * broker would delete the messages in them.
 */
export const STEPS_MS: readonly number[] = [
  100, 250, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 30_000, 60_000, 300_000, 900_000,
  3_600_000,
]
export const LONGEST_STEP_MS = 3_600_000

/** Returns the shortest step that is long enough. The runtime splits other delays into steps, so this is exact. */
export const stepFor = (delayMs: number): number =>
  STEPS_MS.find((stepMs) => stepMs >= delayMs) ?? LONGEST_STEP_MS

export type QueueType = 'quorum' | 'classic'

/** A queue as it is declared. */
export interface QueueSpec {
  readonly name: string
  readonly arguments: Readonly<Record<string, string | number | boolean>>
}

export interface Topology {
  /** The text that the names of all queues except the source begin with. */
  readonly prefix: string
  readonly exchange: string
  readonly source: QueueSpec
  readonly deadLetters: QueueSpec
  /** Queues that are declared when the first message needs them. */
  readonly later: readonly QueueSpec[]
}

/**
 * A million: the broker never dead-letters a message before Redrive does. Its default since 4.0 is 20. It
 * counts each crash for every message in flight, so one bad message would dead-letter good ones too.
 */
const DELIVERY_LIMIT = 1_000_000

/** The argument of a queue that delivers to one of its consumers, and to the next one when that ends. */
export const SINGLE_ACTIVE_CONSUMER = 'x-single-active-consumer'

/** Arguments of a quorum queue that never drops messages: when it is full, it rejects new ones. */
const NEVER_DROPS = {
  'x-queue-type': 'quorum',
  'x-overflow': 'reject-publish',
} as const

/**
 * Without this, the broker removes a message before the target queue has stored it. It also needs
 * `reject-publish`: with the default overflow, the broker falls back to at-most-once.
 */
const AT_LEAST_ONCE = { 'x-dead-letter-strategy': 'at-least-once' } as const

/**
 * Returns the exchange and all queues of a source queue, with the arguments to declare them. With `adopt`, the source
 * and the exchange are not declared.
 */
export function topologyOf(
  queue: string,
  type: QueueType,
  prefix: string = queue,
  order: 'none' | 'lane' = 'none',
): Topology {
  const exchange = deadLetterExchange(prefix)
  const toDeadLetters = {
    'x-dead-letter-exchange': exchange,
    'x-dead-letter-routing-key': queue,
  }
  return {
    prefix,
    exchange,
    source: {
      name: queue,
      arguments: {
        ...(type === 'quorum'
          ? { ...NEVER_DROPS, ...AT_LEAST_ONCE, 'x-delivery-limit': DELIVERY_LIMIT }
          : { 'x-queue-type': 'classic' }),
        ...toDeadLetters,
        ...(order === 'lane' ? { [SINGLE_ACTIVE_CONSUMER]: true } : {}),
      },
    },
    deadLetters: storageQueue(deadLetterQueue(prefix)),
    later: [
      ...STEPS_MS.map((stepMs) => ({
        name: delayQueue(prefix, stepMs),
        arguments: {
          ...NEVER_DROPS,
          ...AT_LEAST_ONCE,
          'x-message-ttl': stepMs,
          'x-dead-letter-exchange': '',
          'x-dead-letter-routing-key': queue,
        },
      })),
      ...FAILURE_CLASSES.map((failureClass) => storageQueue(quarantineQueue(prefix, failureClass))),
      storageQueue(replayedQueue(prefix)),
    ],
  }
}

const storageQueue = (name: string): QueueSpec => ({
  name,
  arguments: { ...NEVER_DROPS, 'x-delivery-limit': DELIVERY_LIMIT },
})
