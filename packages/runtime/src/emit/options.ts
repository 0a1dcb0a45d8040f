import {
  type DeadLetterFilter,
  type DeadLetterOptions,
  type Duration,
  parseDuration,
  type Policy,
  type PolicyOptions,
  type Random,
  type RatePolicy,
  RedriveError,
  resolvePolicy,
} from '@redrive/core'
import { Cron } from 'croner'
import { type Clock, systemClock } from '../clock.ts'
import type { DeadLetterStore, OutboundEvent, Sink } from '../ports.ts'
import { type Schemas, SEVERITIES, SEVERITY_HEADER, type Severity } from './event.ts'

/** What may be said about a sink's failures. What is kept is the emitter's `filter`; nothing keeps an order. */
export type SinkPolicy = Omit<PolicyOptions, 'order' | 'deadLetter' | 'flood' | 'poison'>

export interface QueueOptions {
  /** Most events in hand for one sink: queued, waiting for a retry or under way. From 1 to 1,000,000. */
  readonly most: number
  /**
   * What happens to an event for which there is no room. `'wait'`: `emit` waits for room; in a
   * non-failing scope, which must not wait, it is stored. `'store'`: it is stored. `'drop'`: it is
   * dropped, unless the filter always keeps it.
   */
  readonly whenFull: 'wait' | 'store' | 'drop'
}

export interface SinkOptions {
  readonly sink: Sink
  /** For this sink, on top of the emitter's. */
  readonly policy?: SinkPolicy
  /** For this sink, instead of the emitter's. */
  readonly queue?: QueueOptions
}

export interface RateLimitOptions {
  /** Events a second, over all. From 0.001 to 10,000,000. */
  readonly perSecond: number
  /** Saved up at most. Default: one second's. */
  readonly burst?: number
  /**
   * Events that are never limited; off by default. Whoever can make you emit such an event can then
   * overload your sinks: let `when` prove that it is authentic, rather than trusting its type.
   */
  readonly bypass?: {
    /** This severity and above. */
    readonly severity?: Severity
    readonly types?: readonly (string | RegExp)[]
    readonly when?: (event: OutboundEvent) => boolean
  }
}

export interface AutoReplayOptions {
  /** When, as a cron expression (seconds may come first). A sink that recovers is replayed at once, too. */
  readonly schedule: string
  /** Dead letters asked for at a time; a run goes on until none is left or one fails. Default 100. */
  readonly batch?: number
  /** Older ones are left to people. Default '1d'. */
  readonly maxAge?: Duration
}

export interface CleanupOptions {
  /** When, as a cron expression. Default '17 3 * * *': at night, and not when everybody else does. */
  readonly schedule?: string
  /** Default '30d'. */
  readonly retention?: Duration
}

export interface EmitterOptions<S extends Schemas = Schemas> {
  /** By the names under which events, dead letters and counts speak of them. */
  readonly sinks: Readonly<Record<string, Sink | SinkOptions>>
  /** Where goes what a sink does not take. The emitter closes it. */
  readonly store: DeadLetterStore
  readonly queue: QueueOptions
  /** Retry, breaker, budget, timeout of every sink. Default: 3 attempts, 100 ms to 5 s, a breaker. */
  readonly policy?: SinkPolicy
  /** A Standard Schema for each type that has one (zod, valibot, arktype …). */
  readonly schemas?: S
  /** Which events are worth keeping: `never` beats `always` beats `when`. Default: all. */
  readonly filter?: Pick<DeadLetterOptions, 'never' | 'always' | 'when'>
  /** Over it, an event is dropped, unless the filter always keeps it: then it is stored. Default: none. */
  readonly rateLimit?: RateLimitOptions
  /** Replays what failed for a passing reason, as breaker and budget allow. Default: off. */
  readonly autoReplay?: AutoReplayOptions
  /** Removes what is too old from the store. Default: off; the store may have a retention of its own. */
  readonly cleanup?: CleanupOptions
  readonly clock?: Clock
  readonly random?: Random
}

export interface CloseOptions {
  /** How long sinks may take for what they have; the rest is stored. Default '10s'. */
  readonly drain?: Duration
}

export interface ResolvedSink {
  readonly name: string
  readonly sink: Sink
  readonly policy: Policy
  readonly queue: QueueOptions
}

export interface ResolvedEmitter {
  readonly sinks: readonly ResolvedSink[]
  readonly store: DeadLetterStore
  readonly schemas: Schemas
  readonly filter: DeadLetterFilter
  readonly rate: RatePolicy | undefined
  readonly isBypassed: (event: OutboundEvent) => boolean
  readonly autoReplay:
    | { readonly cron: Cron; readonly batch: number; readonly maxAgeMs: number }
    | undefined
  readonly cleanup: { readonly cron: Cron; readonly retentionMs: number } | undefined
  readonly clock: Clock
  readonly random: Random
}

const REPLAY_BATCH = 100
const REPLAY_MAX_AGE: Duration = '1d'
const CLEANUP_SCHEDULE = '17 3 * * *'
const RETENTION: Duration = '30d'

/** All that is wrong is said at once. */
export function resolveEmitter(options: EmitterOptions): ResolvedEmitter {
  const { store, schemas = {}, rateLimit, autoReplay, cleanup } = options
  const { clock = systemClock, random = Math.random } = options
  const problems: string[] = []
  const sinks = resolveSinks(options, problems)
  const resolved: ResolvedEmitter = {
    sinks,
    store,
    schemas,
    filter: filterOf(options, problems),
    rate: rateLimit === undefined ? undefined : rateOf(rateLimit, problems),
    isBypassed: bypassOf(rateLimit?.bypass),
    autoReplay:
      autoReplay === undefined
        ? undefined
        : {
            cron: cronOf('autoReplay.schedule', autoReplay.schedule, problems),
            batch: whole('autoReplay.batch', autoReplay.batch ?? REPLAY_BATCH, 10_000, problems),
            maxAgeMs: duration('autoReplay.maxAge', autoReplay.maxAge ?? REPLAY_MAX_AGE, problems),
          },
    cleanup:
      cleanup === undefined
        ? undefined
        : {
            cron: cronOf('cleanup.schedule', cleanup.schedule ?? CLEANUP_SCHEDULE, problems),
            retentionMs: duration('cleanup.retention', cleanup.retention ?? RETENTION, problems),
          },
    clock,
    random,
  }
  if (problems.length === 0) return resolved
  const message = `createEmitter() cannot be set up:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}

function resolveSinks(options: EmitterOptions, problems: string[]): readonly ResolvedSink[] {
  const entries = Object.entries(options.sinks)
  if (entries.length === 0) problems.push('sinks: expected at least one')
  return entries.flatMap(([name, given]) => {
    const {
      sink,
      policy,
      queue = options.queue,
    }: SinkOptions = 'send' in given ? { sink: given } : given
    checkQueue(`sinks.${name}.queue`, queue, problems)
    const merged = { ...options.policy, ...policy, flood: 'off', poison: 'off' } as const
    const resolved = collecting(`sinks.${name}.policy`, problems, () =>
      resolvePolicy(merged, 'sink'),
    )
    return resolved === undefined ? [] : [{ name, sink, policy: resolved, queue }]
  })
}

function checkQueue(where: string, queue: QueueOptions | undefined, problems: string[]): void {
  if (queue === undefined) {
    problems.push(
      `${where}: say what happens when a sink cannot keep up, such as { most: 10_000, whenFull: 'store' }`,
    )
    return
  }
  whole(`${where}.most`, queue.most, 1_000_000, problems)
  if (!['wait', 'store', 'drop'].includes(queue.whenFull)) {
    problems.push(
      `${where}.whenFull: expected 'wait' or 'store' or 'drop', got ${String(queue.whenFull)}`,
    )
  }
}

function filterOf({ filter = {} }: EmitterOptions, problems: string[]): DeadLetterFilter {
  const policy = collecting('filter', problems, () => resolvePolicy({ deadLetter: filter }, 'sink'))
  return policy?.deadLetter.filter ?? { never: [], always: [], when: undefined }
}

function rateOf({ perSecond, burst }: RateLimitOptions, problems: string[]): RatePolicy {
  if (!(perSecond >= 0.001 && perSecond <= 10_000_000)) {
    problems.push(
      `rateLimit.perSecond: expected a number from 0.001 to 10,000,000, got ${perSecond}`,
    )
  }
  const most = burst ?? Math.max(1, perSecond)
  if (!(most >= 1)) problems.push(`rateLimit.burst: expected a number from 1, got ${most}`)
  return { perSecond, burst: most }
}

function bypassOf(bypass: RateLimitOptions['bypass']): (event: OutboundEvent) => boolean {
  if (bypass === undefined) return () => false
  const { severity, types = [], when } = bypass
  const least = severity === undefined ? Number.POSITIVE_INFINITY : SEVERITIES.indexOf(severity)
  const isSevere = ({ headers }: OutboundEvent) =>
    SEVERITIES.indexOf(headers[SEVERITY_HEADER] as Severity) >= least
  const isNamed = ({ type }: OutboundEvent) =>
    types.some((one) => (typeof one === 'string' ? one === type : type.search(one) >= 0))
  // Compared, not trusted: a promise would be truthy.
  return (event) => isSevere(event) || isNamed(event) || when?.(event) === true
}

function cronOf(where: string, pattern: string, problems: string[]): Cron {
  try {
    return new Cron(pattern, { paused: true })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    problems.push(`${where}: expected a cron expression such as '*/5 * * * *': ${why}`)
    return new Cron(CLEANUP_SCHEDULE, { paused: true })
  }
}

function whole(where: string, value: number, max: number, problems: string[]): number {
  if (!(Number.isInteger(value) && value >= 1 && value <= max)) {
    problems.push(`${where}: expected a whole number from 1 to ${max}, got ${value}`)
  }
  return value
}

function duration(where: string, value: Duration, problems: string[]): number {
  const ms = parseDuration(value)
  if (ms === undefined || ms <= 0) {
    problems.push(`${where}: expected a duration such as '1d', got ${value}`)
  }
  return ms ?? 0
}

function collecting<T>(where: string, problems: string[], read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof RedriveError)) throw error
    problems.push(...error.problems.map((problem) => `${where}: ${problem}`))
    return undefined
  }
}
