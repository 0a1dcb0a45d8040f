/** A metric of Redrive. One table has all of them; exporters, reference and tests read it. */
export interface MetricRow {
  readonly kind: 'counter' | 'gauge' | 'histogram'
  /** Unit as in UCUM: `s` for seconds; a noun in braces for counts. */
  readonly unit: string
  readonly labels: readonly Label[]
  /** One sentence. */
  readonly meaning: string
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[]
  /** Set for a counter whose total is read from the state. Other counters are added to when an event happens. */
  readonly isTotal?: true
  /** The same values under a name that other systems expect, with their names of the labels. */
  readonly alias?: {
    readonly name: string
    readonly labels: Readonly<Partial<Record<Label, string>>>
  }
}

/**
 * Every label. Ids, error messages and addresses are not labels: each value makes a new series. For the
 * same reason, each label has at most `LABEL_VALUES` values in a process.
 */
export type Label =
  | 'source'
  | 'handler'
  | 'dependency'
  | 'class'
  | 'error_type'
  | 'reason'
  | 'result'
  | 'where'
  | 'to'
  | 'sink'
  | 'job'
  | 'system'

/** 200: more than a service has queues or error types, and small enough for a metrics server. */
export const LABEL_VALUES = 200

const CONSUMER: readonly Label[] = ['source', 'handler']
const SINK: readonly Label[] = ['sink']
/** Seconds from 5 ms to 10 s, as OpenTelemetry recommends, and the default timeout of a handler. */
const DURATIONS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30]
/** The default limits are 5 attempts and 20 runs. */
const ATTEMPTS = [1, 2, 3, 5, 8, 13, 20, 50, 100]

const dlqTotal = { name: 'event_dlq_total', labels: { source: 'source_topic' } } as const
const dlqErrors = { name: 'event_dlq_errors_total', labels: { source: 'source_topic' } } as const
const dlqAttempts = {
  name: 'event_dlq_processing_attempts',
  labels: { source: 'source_topic' },
} as const

/** The name of a metric, as OpenTelemetry exports it. */
export type MetricName =
  | 'redrive.consumer.success'
  | 'redrive.consumer.failure'
  | 'redrive.process.duration'
  | 'redrive.consumer.running'
  | 'redrive.consumer.waiting'
  | 'redrive.consumer.settling'
  | 'redrive.consumer.concurrency_limit'
  | 'redrive.consumer.hung'
  | 'redrive.consumer.lag'
  | 'redrive.consumer.assigned'
  | 'redrive.consumer.connected'
  | 'redrive.consumer.health'
  | 'redrive.consumer.paused'
  | 'redrive.consumer.unproven_age'
  | 'redrive.consumer.connection_lost'
  | 'redrive.consumer.messages_expired'
  | 'redrive.consumer.headers_unreadable'
  | 'redrive.consumer.user_code_failed'
  | 'redrive.retry.attempt'
  | 'redrive.retry.success'
  | 'redrive.retry.exhausted'
  | 'redrive.retry.permanent_failure'
  | 'redrive.retry.rate_limited'
  | 'redrive.dlq.saved'
  | 'redrive.dlq.quarantined'
  | 'redrive.dlq.filtered_out'
  | 'redrive.dlq.write_failed'
  | 'redrive.dlq.attempts'
  | 'redrive.dlq.flood'
  | 'redrive.circuit_breaker.state'
  | 'redrive.circuit_breaker.transition'
  | 'redrive.circuit_breaker.call'
  | 'redrive.circuit_breaker.failure'
  | 'redrive.circuit_breaker.rejected'
  | 'redrive.concurrency.shrunk'
  | 'redrive.emitter.event'
  | 'redrive.emitter.failure'
  | 'redrive.emitter.in_flight'
  | 'redrive.emitter.breaker_state'
  | 'redrive.emitter.rate_limited'
  | 'redrive.emitter.job_event'
  | 'redrive.dlq.replayed'
  | 'redrive.dlq.replay_failed'
  | 'redrive.dlq.cleaned_up'

// biome-ignore format: one row per metric, to be read as a table
export const METRICS: Readonly<Record<MetricName, MetricRow>> = {
  // Consumers: runs of the handler.
  'redrive.consumer.success':           { kind: 'counter', unit: '{run}', labels: CONSUMER, meaning: 'Successful runs of the handler.' },
  'redrive.consumer.failure':           { kind: 'counter', unit: '{run}', labels: [...CONSUMER, 'class', 'error_type'], meaning: 'Failed runs of the handler, counted as attempts or not.' },
  'redrive.process.duration':           { kind: 'histogram', unit: 's', labels: [...CONSUMER, 'system', 'result'], buckets: DURATIONS, meaning: 'Duration of a run of the handler, with decoding, schema and inbox.' },
  'redrive.consumer.running':           { kind: 'gauge', unit: '{run}', labels: CONSUMER, meaning: 'Runs in progress.' },
  'redrive.consumer.waiting':           { kind: 'gauge', unit: '{message}', labels: CONSUMER, meaning: 'Messages that wait in the process for a slot or a short retry.' },
  'redrive.consumer.settling':          { kind: 'gauge', unit: '{message}', labels: CONSUMER, meaning: 'Decided messages that the broker has not confirmed yet.' },
  'redrive.consumer.concurrency_limit': { kind: 'gauge', unit: '{run}', labels: CONSUMER, meaning: 'Runs that adaptive concurrency and breaker allow now.' },
  'redrive.consumer.hung':              { kind: 'gauge', unit: '{run}', labels: CONSUMER, meaning: 'Handlers that still run after their timeout and the grace period.' },
  'redrive.consumer.lag':               { kind: 'gauge', unit: '{message}', labels: CONSUMER, meaning: 'Messages of the source that the consumer has not finished. Absent where the transport does not know.' },
  'redrive.consumer.assigned':          { kind: 'gauge', unit: '{partition}', labels: CONSUMER, meaning: 'Partitions that the consumer has. Absent for brokers without partitions.' },
  'redrive.consumer.connected':         { kind: 'gauge', unit: '1', labels: CONSUMER, meaning: '1 while the consumer is connected to the broker, otherwise 0.' },
  'redrive.consumer.health':            { kind: 'gauge', unit: '1', labels: CONSUMER, meaning: '2: up, 1: degraded, 0: down.' },
  'redrive.consumer.paused':            { kind: 'counter', unit: '{pause}', labels: ['source', 'reason'], meaning: 'Pauses of the consumer.' },
  'redrive.consumer.unproven_age':      { kind: 'gauge', unit: 's', labels: CONSUMER, meaning: 'Time since the first failure of the oldest message that fails without a known cause; 0 if none does.' },
  'redrive.consumer.connection_lost':   { kind: 'counter', unit: '{connection}', labels: ['source'], meaning: 'Lost connections to the broker.' },
  'redrive.consumer.messages_expired':  { kind: 'counter', unit: '{message}', labels: ['source'], meaning: 'Messages that the broker deleted before they were consumed.' },
  'redrive.consumer.headers_unreadable':{ kind: 'counter', unit: '{message}', labels: ['source'], meaning: 'Messages with headers of Redrive that could not be read.' },
  'redrive.consumer.user_code_failed':  { kind: 'counter', unit: '{call}', labels: ['source', 'where'], meaning: 'Rules, signature functions, transports or stores that threw where they must not.' },

  // Retries.
  'redrive.retry.attempt':              { kind: 'counter', unit: '{retry}', labels: [...CONSUMER, 'class', 'where'], meaning: 'Scheduled retries; where: `process` or `broker`.' },
  'redrive.retry.success':              { kind: 'counter', unit: '{message}', labels: CONSUMER, meaning: 'Messages that were handled after at least one failed run.' },
  'redrive.retry.exhausted':            { kind: 'counter', unit: '{message}', labels: [...CONSUMER, 'reason'], meaning: 'Messages given up because a limit of attempts, runs or age was reached.' },
  'redrive.retry.permanent_failure':    { kind: 'counter', unit: '{message}', labels: [...CONSUMER, 'class'], meaning: 'Messages given up immediately because their failure is terminal.' },
  'redrive.retry.rate_limited':         { kind: 'counter', unit: '{retry}', labels: ['source'], meaning: 'Retries over the retry budget.' },

  // Dead letters.
  'redrive.dlq.saved':                  { kind: 'counter', unit: '{message}', labels: [...CONSUMER, 'class', 'reason', 'error_type'], meaning: 'Messages that became dead letters.', alias: dlqTotal },
  'redrive.dlq.quarantined':            { kind: 'counter', unit: '{message}', labels: [...CONSUMER, 'reason'], meaning: 'Suspected poison messages that were quarantined.' },
  'redrive.dlq.filtered_out':           { kind: 'counter', unit: '{message}', labels: [...CONSUMER, 'reason'], meaning: 'Given-up messages that the policy does not keep.' },
  'redrive.dlq.write_failed':           { kind: 'counter', unit: '{message}', labels: ['source'], meaning: 'Hand-offs that the broker did not confirm several times in a row, or rejected. They are repeated.', alias: dlqErrors },
  'redrive.dlq.attempts':               { kind: 'histogram', unit: '{run}', labels: CONSUMER, buckets: ATTEMPTS, meaning: 'Failed runs of a message before it became a dead letter.', alias: dlqAttempts },
  'redrive.dlq.flood':                  { kind: 'counter', unit: '{flood}', labels: ['source'], meaning: 'Floods of similar dead letters, which slow the consumer.' },

  // Circuit breakers of dependencies.
  'redrive.circuit_breaker.state':      { kind: 'gauge', unit: '1', labels: ['dependency'], meaning: '0: closed, 1: half-open, 2: open, 3: isolated.' },
  'redrive.circuit_breaker.transition': { kind: 'counter', unit: '{transition}', labels: ['dependency', 'to'], meaning: 'Changes of the state of the breaker.' },
  'redrive.circuit_breaker.call':       { kind: 'counter', isTotal: true, unit: '{run}', labels: ['dependency'], meaning: 'Runs of handlers that call the dependency.' },
  'redrive.circuit_breaker.failure':    { kind: 'counter', isTotal: true, unit: '{run}', labels: ['dependency'], meaning: 'Failed runs of handlers that call the dependency.' },
  'redrive.circuit_breaker.rejected':   { kind: 'counter', isTotal: true, unit: '{message}', labels: ['dependency'], meaning: 'Messages that did not run, or were returned after their run, because the breaker was open.' },
  'redrive.concurrency.shrunk':         { kind: 'counter', unit: '{change}', labels: ['source'], meaning: 'Reductions of the concurrency limit, because the dependency was overloaded.' },

  // Emitters.
  'redrive.emitter.event':              { kind: 'counter', isTotal: true, unit: '{event}', labels: [...SINK, 'result'], meaning: 'Events by result: delivered, stored, dropped or lost.' },
  'redrive.emitter.failure':            { kind: 'counter', unit: '{event}', labels: [...SINK, 'result', 'reason'], meaning: 'Events that did not reach the sink, with the reason.' },
  'redrive.emitter.in_flight':          { kind: 'gauge', unit: '{event}', labels: SINK, meaning: 'Events that are queued, wait for a retry or are being sent.' },
  'redrive.emitter.breaker_state':      { kind: 'gauge', unit: '1', labels: SINK, meaning: 'Breaker of the sink. 0: closed, 1: half-open, 2: open, 3: isolated.' },
  'redrive.emitter.rate_limited':       { kind: 'counter', isTotal: true, unit: '{event}', labels: [], meaning: 'Events over the rate limit.' },
  'redrive.emitter.job_event':          { kind: 'counter', isTotal: true, unit: '{event}', labels: ['job', 'result'], meaning: 'Undelivered events of non-failing jobs by result: stored, dropped or lost.' },
  'redrive.dlq.replayed':               { kind: 'counter', unit: '{event}', labels: SINK, meaning: 'Dead letters of the sink that it accepted when they were sent again.' },
  'redrive.dlq.replay_failed':          { kind: 'counter', unit: '{event}', labels: SINK, meaning: 'Dead letters of the sink that it did not accept when they were sent again.' },
  'redrive.dlq.cleaned_up':             { kind: 'counter', unit: '{event}', labels: [], meaning: 'Old dead letters removed from the store.' },
}

export type Labels = Readonly<Partial<Record<Label, string>>>

/** A value for one series of a metric. For counters of events it is added; otherwise it replaces the last one. */
export interface Measurement {
  readonly metric: MetricName
  readonly value: number
  readonly labels: Labels
}

export const METRIC_NAMES = Object.keys(METRICS) as readonly MetricName[]

/** Returns the row of a metric, with the optional fields. */
export const rowOf = (metric: MetricName): MetricRow => METRICS[metric]

/** Returns true for a metric that is read from the state of the process when metrics are collected. */
export const isFromState = (metric: MetricName): boolean =>
  rowOf(metric).kind === 'gauge' || rowOf(metric).isTotal === true
