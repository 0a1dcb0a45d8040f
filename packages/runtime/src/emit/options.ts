import type {
  DeadLetterFilter,
  DeadLetterOptions,
  Duration,
  Policy,
  PolicyOptions,
  Random,
} from '@redrive/core'
import type { RatePolicy } from '@redrive/core/internal'
import type { Cron } from 'croner'
import type { Clock } from '../clock.ts'
import type { DeadLetterStore } from '../ports/dead-letter-store.ts'
import type { OutboundEvent, Sink } from '../ports/sink.ts'
import type { Schemas, Severity } from './event.ts'

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
  /** Events over the limit are dropped. Events that the filter always keeps are stored. Default: none. */
  readonly rateLimit?: RateLimitOptions
  /**
   * Maximum time until a sink has accepted an event ('10ms'–'1d'). After it, the event is stored, and `emit`
   * resolves. It also limits each attempt, and a `Retry-After` that is longer stores the event. Default '30s'.
   */
  readonly maxWait?: Duration
  /**
   * When an event is written to the store. `'on_failure'`: when a sink did not accept it. A crash of the process
   * loses events in flight. `'before_send'`: before it is sent. `emit` resolves when it is stored. Default `'on_failure'`.
   */
  readonly durability?: 'on_failure' | 'before_send'
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
  readonly maxWaitMs: number
  readonly durability: NonNullable<EmitterOptions['durability']>
  readonly autoReplay:
    | { readonly cron: Cron; readonly batch: number; readonly maxAgeMs: number }
    | undefined
  readonly cleanup: { readonly cron: Cron; readonly retentionMs: number } | undefined
  readonly clock: Clock
  readonly random: Random
}
