import type { BreakerPhase, Delivery } from '@redrive/core'
import type { DependencyCounts } from '../dependency-counts.ts'
import { describeError } from '../log/text.ts'
import type { Loop } from '../loop.ts'
import type { SourceState } from '../source-state.ts'

/** Whether a consumer works, and why not. */
export interface ConsumerHealth {
  /** `down`: it consumes nothing. `degraded`: it works, but needs attention. */
  readonly status: 'up' | 'degraded' | 'down'
  /** One sentence for each reason. Empty when the status is `up`. */
  readonly reasons: readonly string[]
  readonly isConnected: boolean
  /** Partitions of the topic that this consumer has; undefined for brokers without partitions. */
  readonly assigned: number | undefined
  /** Messages of the source that this consumer has not finished; undefined where the transport does not know. */
  readonly lag: number | undefined
  readonly breaker: BreakerHealth
  /** Time of the last message that was handled, epoch ms, to about a second; undefined before the first one. */
  readonly lastHandledAt: number | undefined
  /** Handlers that still run after their timeout and the grace period. */
  readonly hung: number
  /** The message that fails for the longest time without a known cause. */
  readonly oldestUnproven: UnprovenMessage | undefined
}

/** The breaker of the dependency. */
export interface BreakerHealth extends DependencyCounts {
  readonly dependency: string
  readonly phase: BreakerPhase
}

export interface UnprovenMessage {
  readonly deliveryId: string
  /** Its first failure, epoch ms. */
  readonly since: number
}

export function healthOf<D extends Delivery>(loop: Loop<D>, source: SourceState): ConsumerHealth {
  const { capacity, guardState, handOff, slowed, unended, deps } = loop
  // Successes are counted in batches.
  capacity.recordSuccesses()
  const { dependency, policy, clock } = deps
  const { isConnected, assigned, missing } = source
  const now = clock.now()
  const phase = guardState.breakerPhase(now)
  const oldestUnproven = guardState.unproven.oldest(now)
  const breaker = { dependency: dependency.name, phase, ...dependency.counts }
  const isFull = unended.hung >= policy.concurrency
  const checks: readonly Check[] = [
    [capacity.isStopping, 'down', 'It is stopping or has stopped.'],
    [!isConnected, 'down', 'It has no connection to the broker.'],
    [assigned === 0, 'down', 'No partition is assigned to it.'],
    [missing.size > 0, 'degraded', `These topics do not exist: ${[...missing].join(', ')}.`],
    [capacity.isPauseRequested, 'down', 'It was paused.'],
    [phase === 'isolated', 'down', `"${dependency.name}" is isolated.`],
    [
      phase === 'open',
      capacity.isGivingUp ? 'degraded' : 'down',
      `The breaker of "${dependency.name}" is open.`,
    ],
    [phase === 'halfOpen', 'degraded', `The breaker of "${dependency.name}" is half-open.`],
    [isFull, 'down', 'Handlers that do not end hold every slot.'],
    [!isFull && unended.hung > 0, 'degraded', hungReason(unended.hung)],
    [
      handOff.stuck > 0,
      handOff.stuck >= policy.concurrency ? 'down' : 'degraded',
      `The broker does not store copies: ${describeError(handOff.lastProblem)}`,
    ],
    [
      slowed.size > 0,
      slowed.isFull ? 'down' : 'degraded',
      'Many messages fail in the same way, and their dead letters are written slowly.',
    ],
    [
      guardState.isFailing(now),
      'degraded',
      `Several messages fail and none passes: "${dependency.name}" may be unhealthy.`,
    ],
    [oldestUnproven !== undefined, 'degraded', 'A message fails, and the cause is not known.'],
  ]
  const found = checks.filter(([isTrue]) => isTrue)
  const isDown = found.some(([, status]) => status === 'down')
  return {
    status: isDown ? 'down' : found.length > 0 ? 'degraded' : 'up',
    reasons: found.map(([, , reason]) => reason),
    isConnected,
    assigned,
    lag: deps.transport.lag?.(),
    breaker,
    lastHandledAt: guardState.lastHandledAt,
    hung: unended.hung,
    oldestUnproven,
  }
}

const hungReason = (hung: number) =>
  hung === 1 ? '1 handler does not end.' : `${hung} handlers do not end.`

type Check = readonly [isTrue: boolean, status: 'degraded' | 'down', reason: string]
