import {
  type DeadLetterFilter,
  type DeadLetterOptions,
  type Duration,
  parseDuration,
  type Policy,
  type PolicyOptions,
  type Random,
  RedriveError,
  resolvePolicy,
} from '@redrive/core'
import type { RatePolicy } from '@redrive/core/internal'
import { Cron } from 'croner'
import { type Clock, systemClock } from '../clock.ts'
import type { DeadLetterStore } from '../ports/dead-letter-store.ts'
import type { OutboundEvent, Sink } from '../ports/sink.ts'
import { type Schemas, SEVERITIES, SEVERITY_HEADER, type Severity } from './event.ts'

/** The policy of a sink. The emitter's `filter` decides what is kept; sinks have no order. */
export type SinkPolicy = Omit<PolicyOptions, 'order' | 'deadLetter' | 'flood' | 'poison'>

export interface QueueOptions {
  /** Maximum events in flight for one sink: queued, waiting for a retry or being sent (1–1,000,000). */
  readonly maxEvents: number
  /**
   * What happens to an event when the queue is full. `'wait'`: `emit` waits; in a non-failing scope,
   * which must not wait, the event is stored. `'store'`: it is stored. `'drop'`: it is dropped, unless
   * the filter always keeps it.
   */
  readonly onFull: 'wait' | 'store' | 'drop'
}

export interface SinkOptions {
  /** The destination. */
  readonly sink: Sink
  /** Policy of this sink, merged over the emitter's. Default: the emitter's. */
  readonly policy?: SinkPolicy
  /** Queue of this sink. Default: the emitter's. */
  readonly queue?: QueueOptions
}

export interface RateLimitOptions {
  /** Events per second, over all sinks (0.001–10,000,000). */
  readonly perSecond: number
  /** Maximum unused events that can be saved for later. Default: one second of the rate. */
  readonly burst?: number
  /**
   * Events that are never limited. A person who can trigger such an event can overload your sinks. Let
   * `when` verify that the event is authentic, instead of trusting its type. Default: none.
   */
  readonly bypass?: {
    /** Events of this severity and higher ones. Default: none. */
    readonly severity?: Severity
    /** Events of these types. Default: none. */
    readonly types?: readonly (string | RegExp)[]
    /** Events for which it returns true. Default: none. */
    readonly when?: (event: OutboundEvent) => boolean
  }
}

export interface AutoReplayOptions {
  /** The time, as a cron expression (seconds may come first). A sink that recovers is also replayed immediately. */
  readonly schedule: string
  /** Dead letters read at a time. A replay continues until none is left or one fails. Default 100. */
  readonly batch?: number
  /** Older dead letters must be replayed manually. Default '1d'. */
  readonly maxAge?: Duration
}

export interface CleanupOptions {
  /** The time, as a cron expression. Default '17 3 * * *': at night, but not on the full hour. */
  readonly schedule?: string
  /** How long a dead letter is kept. Default '30d'. */
  readonly retention?: Duration
}

export interface EmitterOptions<S extends Schemas = Schemas> {
  /** Sinks by name. Events, dead letters and counts use these names. */
  readonly sinks: Readonly<Record<string, Sink | SinkOptions>>
  /** Stores events that a sink did not accept. The emitter closes it. */
  readonly store: DeadLetterStore
  /** Queue of every sink. */
  readonly queue: QueueOptions
  /** Retry, breaker, budget, timeout of every sink. Default: 3 attempts, 100 ms to 5 s, a breaker. */
  readonly policy?: SinkPolicy
  /** A Standard Schema for each type that has one (zod, valibot, arktype …). Default: none. */
  readonly schemas?: S
  /** Which events to keep: `drop` wins over `keep`, and `keep` over `keepIf`. Default: all. */
  readonly filter?: Pick<DeadLetterOptions, 'drop' | 'keep' | 'keepIf'>
  /** Events over the limit are dropped. Those that the filter always keeps are stored. Default: none. */
  readonly rateLimit?: RateLimitOptions
  /** Replays events that failed for a temporary reason, as breaker and budget allow. Default: off. */
  readonly autoReplay?: AutoReplayOptions
  /** Removes old dead letters from the store. Default: off; the store may have its own retention. */
  readonly cleanup?: CleanupOptions
  /** Clock for all waits and timestamps; a test can control it. Default: the system's. */
  readonly clock?: Clock
  /** Source of random numbers for jitter. Default: `Math.random`. */
  readonly random?: Random
}

export interface CloseOptions {
  /** Maximum time for sinks to finish; remaining events are stored. Default '10s'. */
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

/** Resolves the options. Throws one error that lists every problem. */
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
  const message = `The options of createEmitter() are invalid:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}

function resolveSinks(options: EmitterOptions, problems: string[]): readonly ResolvedSink[] {
  const entries = Object.entries(options.sinks)
  if (entries.length === 0) problems.push('sinks: expected at least one sink')
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
      `${where}: expected a limit for events that wait for a slow sink, such as { maxEvents: 10_000, onFull: 'store' }, got nothing`,
    )
    return
  }
  whole(`${where}.maxEvents`, queue.maxEvents, 1_000_000, problems)
  if (!['wait', 'store', 'drop'].includes(queue.onFull)) {
    problems.push(
      `${where}.onFull: expected 'wait', 'store' or 'drop', got "${String(queue.onFull)}"`,
    )
  }
}

function filterOf({ filter = {} }: EmitterOptions, problems: string[]): DeadLetterFilter {
  const policy = collecting('filter', problems, () => resolvePolicy({ deadLetter: filter }, 'sink'))
  return policy?.deadLetter.filter ?? { drop: [], keep: [], keepIf: undefined }
}

function rateOf({ perSecond, burst }: RateLimitOptions, problems: string[]): RatePolicy {
  if (!(perSecond >= 0.001 && perSecond <= 10_000_000)) {
    problems.push(
      `rateLimit.perSecond: expected a number from 0.001 to 10,000,000, got ${perSecond}`,
    )
  }
  const most = burst ?? Math.max(1, perSecond)
  if (!(most >= 1)) problems.push(`rateLimit.burst: expected a number of at least 1, got ${most}`)
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
  // Compared with true, because a promise is truthy.
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
    problems.push(`${where}: expected a duration such as '1d', got "${value}"`)
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
