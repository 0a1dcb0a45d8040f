import { FAILURE_CLASSES, type FailureClass, formatDuration } from '@redrive/core'

/** Names of what belongs to a source queue. */
export const deadLetterExchange = (queue: string): string => `${queue}.dlx`
export const deadLetterQueue = (queue: string): string => `${queue}.dlq`
export const quarantineQueue = (queue: string, failureClass: FailureClass): string =>
  `${queue}.dlq.quarantine.${failureClass}`
/** What consumers say about replays, until the control plane reads it. */
export const replayedQueue = (queue: string): string => `${queue}.replayed`
export const delayQueue = (queue: string, stepMs: number): string =>
  `${queue}.delay.${formatDuration(stepMs)}`

/**
 * The delay grid: one queue per step, and the step is the time to live of the whole queue, so that
 * nobody waits behind someone with a longer delay. Few, because a queue that holds messages must
 * never expire: the broker would delete what it holds.
 */
export const STEPS_MS: readonly number[] = [
  100, 250, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 30_000, 60_000, 300_000, 900_000,
  3_600_000,
]
export const LONGEST_STEP_MS = 3_600_000

/** The step that is long enough. The runtime takes a delay between two steps in legs, so that this is exact. */
export const stepFor = (delayMs: number): number =>
  STEPS_MS.find((stepMs) => stepMs >= delayMs) ?? LONGEST_STEP_MS

export type QueueType = 'quorum' | 'classic'

/** A queue as it is declared. */
export interface QueueSpec {
  readonly name: string
  readonly arguments: Readonly<Record<string, string | number>>
}

export interface Topology {
  readonly exchange: string
  readonly source: QueueSpec
  readonly deadLetters: QueueSpec
  /** Made when the first message needs them. */
  readonly later: readonly QueueSpec[]
}

/**
 * A million: the broker never gives up before we do. Its default since 4.0 is 20, and it counts
 * every crash for every message in hand, so that one bad message would take the good ones with it.
 */
const DELIVERY_LIMIT = 1_000_000

/** Quorum queues that keep what they were given: full means refused, never dropped. */
const KEEPS = {
  'x-queue-type': 'quorum',
  'x-overflow': 'reject-publish',
} as const

/**
 * Without this the broker moves a message on and forgets it before the target has it. It needs
 * `reject-publish` too: with the default overflow the broker falls back to moving blindly.
 */
const SAFELY_TO = { 'x-dead-letter-strategy': 'at-least-once' } as const

/** Everything a source queue needs, as it should be declared. */
export function topologyOf(queue: string, type: QueueType): Topology {
  const exchange = deadLetterExchange(queue)
  const toDeadLetters = {
    'x-dead-letter-exchange': exchange,
    'x-dead-letter-routing-key': queue,
  }
  return {
    exchange,
    source: {
      name: queue,
      arguments:
        type === 'quorum'
          ? { ...KEEPS, ...SAFELY_TO, ...toDeadLetters, 'x-delivery-limit': DELIVERY_LIMIT }
          : { 'x-queue-type': 'classic', ...toDeadLetters },
    },
    deadLetters: keeper(deadLetterQueue(queue)),
    later: [
      ...STEPS_MS.map((stepMs) => ({
        name: delayQueue(queue, stepMs),
        arguments: {
          ...KEEPS,
          ...SAFELY_TO,
          'x-message-ttl': stepMs,
          'x-dead-letter-exchange': '',
          'x-dead-letter-routing-key': queue,
        },
      })),
      ...FAILURE_CLASSES.map((failureClass) => keeper(quarantineQueue(queue, failureClass))),
      keeper(replayedQueue(queue)),
    ],
  }
}

const keeper = (name: string): QueueSpec => ({
  name,
  arguments: { ...KEEPS, 'x-delivery-limit': DELIVERY_LIMIT },
})
