import type { ConsumerHealth } from '@redrive/runtime'
import { runningConsumers } from '@redrive/runtime/internal'
import type { Condition, ProcessAlertKind } from './condition.ts'

/** How long a state lasts before it is an alert, in ms. */
export interface StateLimits {
  readonly unprovenMs: number
  readonly unassignedMs: number
  readonly disconnectedMs: number
}

interface State {
  readonly source: string
  readonly handler: string
  readonly health: ConsumerHealth
}

interface StateRule {
  readonly kind: ProcessAlertKind
  readonly isTrue: (state: State, now: number, limits: StateLimits) => boolean
  /** How long it must be true. */
  readonly forMs: (limits: StateLimits) => number
  readonly summary: (state: State) => string
  readonly facts: (state: State, now: number) => Condition['facts']
  /** Distinguishes the alerts of a source. Default: the handler. */
  readonly subject?: (state: State) => string
}

const NO_FACTS = () => ({})

/** The alerts that are states of a consumer, not events. */
const RULES: readonly StateRule[] = [
  {
    kind: 'breaker_open',
    // A half-open breaker tries one message and may open again.
    isTrue: ({ health }) => health.breaker.phase !== 'closed',
    forMs: () => 0,
    summary: breakerSummary,
    facts: ({ health }) => ({ target: health.breaker.dependency }),
    subject: ({ health }) => health.breaker.dependency,
  },
  {
    kind: 'handlers_hung',
    isTrue: ({ health }) => health.hung > 0,
    forMs: () => 0,
    summary: ({ source, health }) => `${health.hung} handlers of ${source} do not end`,
    facts: ({ health }) => ({ count: health.hung }),
  },
  {
    kind: 'unproven',
    isTrue: ({ health }, now, { unprovenMs }) =>
      health.oldestUnproven !== undefined && now - health.oldestUnproven.since >= unprovenMs,
    forMs: () => 0,
    summary: ({ source }) => `A message of ${source} fails, and the cause is not known`,
    facts: ({ health: { oldestUnproven: message } }, now) =>
      message === undefined ? {} : { messageId: message.deliveryId, ageMs: now - message.since },
  },
  {
    kind: 'nothing_assigned',
    isTrue: ({ health }) => health.assigned === 0,
    forMs: ({ unassignedMs }) => unassignedMs,
    summary: ({ source, handler }) => `No partition of ${source} is assigned to ${handler}`,
    facts: NO_FACTS,
  },
  {
    kind: 'disconnected',
    isTrue: ({ health }) => !health.isConnected,
    forMs: ({ disconnectedMs }) => disconnectedMs,
    summary: ({ source, handler }) => `${handler} has no connection to the broker of ${source}`,
    facts: NO_FACTS,
  },
]

/** Reads the states of all consumers of this process, and remembers since when each one is true. */
export class ConsumerStates {
  /** Consumers that stop are forgotten. */
  #since = new Map<string, number>()

  /** Returns the conditions that hold now. */
  read(now: number, limits: StateLimits): readonly Condition[] {
    const before = this.#since
    this.#since = new Map()
    return [...runningConsumers()].flatMap(({ handler, consumer }) => {
      const state = { source: consumer.source, handler, health: consumer.health() }
      return RULES.filter(({ isTrue }) => isTrue(state, now, limits)).flatMap((rule) => {
        const key = JSON.stringify([rule.kind, state.source, handler])
        const since = before.get(key) ?? now
        this.#since.set(key, since)
        return now - since < rule.forMs(limits) ? [] : [conditionOf(rule, state, now)]
      })
    })
  }
}

function conditionOf(rule: StateRule, state: State, now: number): Condition {
  const { kind, summary, facts, subject } = rule
  const { source, handler } = state
  const own = { handler, ...facts(state, now) }
  return { kind, source, subject: subject?.(state) ?? handler, summary: summary(state), facts: own }
}

function breakerSummary({ source, health: { breaker } }: State): string {
  const { dependency, phase } = breaker
  return phase === 'isolated'
    ? `${dependency} is isolated: ${source} waits`
    : `The circuit breaker of ${dependency} is open: ${source} waits`
}
