import type { PolicyOptions } from '@redrive/core'
import { type SeededRandom, seededRandom } from '@redrive/testing'
import { between } from './random.ts'

/** The behaviour of the handler for a message. */
export type MessageKind =
  /** Succeeds whenever the dependency is up. */
  | 'good'
  /** Fails a few times for transient reasons, then succeeds. */
  | 'flaky'
  /** Takes longer than the timeout at first, then succeeds. */
  | 'slow'
  /** Fails every time without a known reason. */
  | 'poison'
  /** Rejected by a business rule. */
  | 'business'
  /** Kills the process that handles it. */
  | 'crasher'

export interface PlannedMessage {
  readonly id: string
  readonly kind: MessageKind
  readonly atMs: number
  readonly lane: string | undefined
  /** The producer sends it twice. */
  readonly isSentTwice: boolean
  /** Number of failures of a flaky or slow message itself. */
  readonly ownFailures: number
  readonly workMs: number
}

export type Fault =
  | { readonly kind: 'crash'; readonly atMs: number; readonly process: number }
  /**
   * The process dies directly after the n-th event of the run, so every await boundary is
   * reachable.
   */
  | { readonly kind: 'crashAtStep'; readonly step: number; readonly process: number }
  | { readonly kind: 'brokerRestart'; readonly atMs: number }
  | {
      readonly kind: 'outage'
      readonly atMs: number
      readonly lastsMs: number
      readonly share: number
    }
  | {
      readonly kind: 'slowDependency'
      readonly atMs: number
      readonly lastsMs: number
      readonly addMs: number
    }
  /** Requests to the broker or their responses are lost with this probability. */
  | {
      readonly kind: 'lossyLink'
      readonly atMs: number
      readonly lastsMs: number
      readonly probability: number
    }
  | { readonly kind: 'deadLettersFull'; readonly atMs: number; readonly lastsMs: number }
  /** The consumer is stopped and a new one starts, as in a deployment. */
  | { readonly kind: 'redeploy'; readonly atMs: number; readonly process: number }

/** Everything about a run that is not random during the run. Plain data, so that it can be shrunk. */
export interface Scenario {
  readonly seed: number
  readonly processes: number
  readonly hasInbox: boolean
  readonly isOrdered: boolean
  readonly policy: PolicyOptions
  readonly longestDelayMs: number
  readonly skewMs: readonly number[]
  readonly messages: readonly PlannedMessage[]
  readonly faults: readonly Fault[]
}

/** Faults happen in the first 60 s. Then all faults end, and the run must drain. */
export const FAULTS_END_MS = 60_000

export const MAX_ATTEMPTS = 5

export function scenarioOf(seed: number): Scenario {
  const random = seededRandom(seed)
  const isOrdered = random.chance(0.2)
  const processes = between(random, 1, 4)
  const hasLegs = random.chance(0.15)
  const messages = Array.from({ length: between(random, 3, 40) }, (_, index) =>
    messageOf(random, index, isOrdered),
  )
  return {
    seed,
    processes,
    hasInbox: random.chance(0.5),
    isOrdered,
    policy: policyOf(random, isOrdered, hasLegs),
    longestDelayMs: hasLegs ? 1_500 : 86_400_000,
    // Split delays compare the clocks of different processes, so these runs have correct clocks.
    skewMs: Array.from({ length: processes }, () =>
      hasLegs || random.chance(0.7) ? 0 : between(random, -3_600_000, 3_600_000),
    ),
    messages,
    faults: faultsOf(random, processes, messages),
  }
}

function policyOf(random: SeededRandom, isOrdered: boolean, hasLegs: boolean): PolicyOptions {
  return {
    timeout: random.pick(['1s', '2s', '5s']),
    concurrency: random.pick([1, 2, 10, 50]),
    order: isOrdered ? 'lane' : 'none',
    retry: {
      attempts: MAX_ATTEMPTS,
      backoff: { kind: 'exponential', base: random.pick(['100ms', '1s', '2s']), cap: '20s' },
      maxInlineDelay: random.pick(['0ms', '200ms', '1s']),
      // With the default of an hour, such a message would have thousands of legs.
      unproven: hasLegs ? { maxAge: '4m' } : {},
    },
  }
}

const KINDS = [
  'good',
  'good',
  'good',
  'good',
  'good',
  'good',
  'flaky',
  'slow',
  'poison',
  'business',
] as const

function messageOf(random: SeededRandom, index: number, isOrdered: boolean): PlannedMessage {
  return {
    id: `m${index}`,
    kind: random.chance(0.01) ? 'crasher' : random.pick(KINDS),
    atMs: between(random, 0, 40_000),
    lane: isOrdered ? `lane${between(random, 0, 2)}` : undefined,
    isSentTwice: random.chance(0.05),
    ownFailures: between(random, 1, 2),
    workMs: between(random, 0, 300),
  }
}

function faultsOf(
  random: SeededRandom,
  processes: number,
  messages: readonly PlannedMessage[],
): readonly Fault[] {
  const some = (most: number, make: () => Fault) =>
    Array.from({ length: between(random, 0, most) }, make)
  const at = () => between(random, 0, FAULTS_END_MS - 10_000)
  const process = () => between(random, 0, processes - 1)
  return [
    ...some(2, () => ({ kind: 'crash', atMs: at(), process: process() })),
    ...some(2, () => ({
      kind: 'crashAtStep',
      step: between(random, 1, 20 * messages.length),
      process: process(),
    })),
    ...some(1, () => ({ kind: 'brokerRestart', atMs: at() })),
    ...some(1, () => ({
      kind: 'outage',
      atMs: at(),
      lastsMs: between(random, 500, 30_000),
      share: random.pick([1, 1, 1, 0.5]),
    })),
    ...some(1, () => ({
      kind: 'slowDependency',
      atMs: at(),
      lastsMs: between(random, 500, 20_000),
      addMs: between(random, 500, 6_000),
    })),
    ...some(1, () => ({
      kind: 'lossyLink',
      atMs: at(),
      lastsMs: between(random, 500, 10_000),
      probability: random.pick([0.1, 0.5, 1]),
    })),
    ...some(1, () => ({
      kind: 'deadLettersFull',
      atMs: at(),
      lastsMs: between(random, 500, 20_000),
    })),
    ...some(1, () => ({ kind: 'redeploy', atMs: at(), process: process() })),
  ]
}
