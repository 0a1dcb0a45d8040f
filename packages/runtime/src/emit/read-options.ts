import type { Policy, Random } from '@redrive/core'
import {
  type Check,
  FUNCTION,
  isRecord,
  type RatePolicy,
  readFilter,
  readOptions,
  readPolicy,
  type Section,
  shown,
} from '@redrive/core/internal'
import { Cron } from 'croner'
import { CLOCK, SCHEMA, SINK, STORE } from '../checks.ts'
import { type Clock, systemClock } from '../clock.ts'
import type { DeadLetterStore } from '../ports/dead-letter-store.ts'
import type { OutboundEvent, Sink } from '../ports/sink.ts'
import { type Schemas, SEVERITIES, SEVERITY_HEADER, type Severity } from './event.ts'
import type {
  EmitterOptions,
  QueueOptions,
  RateLimitOptions,
  ResolvedEmitter,
  ResolvedSink,
} from './options.ts'

const REPLAY_BATCH = 100
const DAY_MS = 86_400_000
const REPLAY_MAX_AGE_MS = DAY_MS
/** 30 s: longer than any usual retry, and short enough for a request that waits for `emit`. */
const MAX_WAIT_MS = 30_000
/** 10 ms: with less, no request to a sink ends in time. */
const WAITED = { min: 10, max: DAY_MS }
const CLEANUP_SCHEDULE = '17 3 * * *'
const RETENTION_MS = 30 * DAY_MS
/** Ten years: a longer one is a mistake in the unit. */
const KEPT = { min: 1, max: 3_650 * DAY_MS }

/** Resolves the options. Throws one error that lists every problem. A new option is one line here. */
export function resolveEmitter(options: EmitterOptions): ResolvedEmitter {
  return readOptions('createEmitter()', options, (top) => ({
    ...readSinks(top),
    store: top.required<DeadLetterStore>('store', STORE),
    schemas: readSchemas(top),
    filter: readEmitterFilter(top.section('filter')),
    ...readRateLimit(top),
    durability: top.choice('durability', 'on_failure', ['on_failure', 'before_send']),
    autoReplay: readAutoReplay(top),
    cleanup: readCleanup(top),
    clock: top.ifGiven<Clock>('clock', CLOCK) ?? systemClock,
    random: top.ifGiven<Random>('random', FUNCTION) ?? Math.random,
  }))
}

function readSinks(top: Section): Pick<ResolvedEmitter, 'sinks' | 'maxWaitMs'> {
  const maxWaitMs = top.duration('maxWait', MAX_WAIT_MS, WAITED)
  const given = top.raw('sinks')
  const entries = Object.entries(isRecord(given) ? given : {})
  if (entries.length === 0) {
    top.problem('sinks', `expected at least one sink, such as { loki: loki({ url }) }`)
  }
  const sharedPolicy = readSinkPolicy(top, top.raw('policy'))
  const sharedQueue = readQueue(top)
  const sections = top.section('sinks')
  const sinks = entries.map(([name, sinkOrOptions]) => {
    if (name === '') top.problem('sinks', 'expected a name for each sink, got an empty name')
    if (SINK.isValid(sinkOrOptions)) {
      return { name, sink: sinkOrOptions as Sink, policy: sharedPolicy, queue: sharedQueue }
    }
    if (!isRecord(sinkOrOptions)) {
      sections.problem(name, `expected ${SINK.expected}, got ${shown(sinkOrOptions)}`)
    }
    const one = isRecord(sinkOrOptions) ? sections.section(name) : undefined
    return one === undefined ? undefined : readSink(name, one, { top, sharedPolicy, sharedQueue })
  })
  const known = sinks.filter((sink) => sink !== undefined)
  if (known.some(({ queue }) => queue === undefined)) {
    top.problem(
      'queue',
      "expected a limit for events that wait for a slow sink, such as { maxEvents: 10_000, onFull: 'store' }, got nothing",
    )
  }
  const sinksInTime = (known as readonly ResolvedSink[]).map((sink) => ({
    ...sink,
    // A longer attempt would be aborted without a result, and the breaker would not count it.
    policy: { ...sink.policy, timeoutMs: Math.min(sink.policy.timeoutMs, maxWaitMs) },
  }))
  return { sinks: sinksInTime, maxWaitMs }
}

interface SharedSettings {
  readonly top: Section
  readonly sharedPolicy: Policy
  readonly sharedQueue: QueueOptions | undefined
}

function readSink(name: string, one: Section, { top, sharedPolicy, sharedQueue }: SharedSettings) {
  const policy = one.raw('policy')
  const merged = isRecord(policy) ? { ...(top.raw('policy') as object), ...policy } : policy
  const sink = {
    name,
    sink: one.required<Sink>('sink', SINK),
    policy: policy === undefined ? sharedPolicy : readSinkPolicy(one, merged),
    queue: readQueue(one) ?? sharedQueue,
  }
  one.end()
  return sink
}

/** Reads the policy of a sink. The guards of messages are off: a sink has events of many kinds. */
function readSinkPolicy(parent: Section, given: unknown): Policy {
  const isObject = given === undefined || isRecord(given)
  const replacement = isObject ? { ...given, flood: 'off', poison: 'off' } : given
  const section = parent.section('policy', replacement)
  const policy = readPolicy(section, 'sink')
  if (policy.order !== 'none') {
    section.problem(
      'order',
      "expected no order, because an emitter sends the events of a lane concurrently and retries them separately. For events in order, use an outbox with order: 'lane'",
    )
  }
  section.end()
  return policy
}

function readQueue(parent: Section): QueueOptions | undefined {
  if (parent.raw('queue') === undefined) return undefined
  const section = parent.section('queue')
  const queue = {
    maxEvents: section.required<number>('maxEvents', MAX_EVENTS),
    onFull: section.required<QueueOptions['onFull']>('onFull', ON_FULL),
  }
  section.end()
  return queue
}

const isNumber = (value: unknown, min: number, max: number): value is number =>
  typeof value === 'number' && value >= min && value <= max

const MAX_EVENTS: Check = {
  isValid: (value) => Number.isInteger(value) && isNumber(value, 1, 1_000_000),
  expected: 'a whole number from 1 to 1000000',
}

const ON_FULL: Check = {
  isValid: (value) => value === 'wait' || value === 'store' || value === 'drop',
  expected: "'wait', 'store' or 'drop'",
}

function readSchemas(top: Section): Schemas {
  const section = top.section('schemas')
  const given = top.raw('schemas')
  if (!isRecord(given)) return {}
  for (const type of Object.keys(given)) section.ifGiven(type, SCHEMA)
  return given as Schemas
}

function readEmitterFilter(section: Section): ResolvedEmitter['filter'] {
  const filter = readFilter(section)
  section.end()
  return filter
}

function readRateLimit(top: Section): Pick<ResolvedEmitter, 'rate' | 'isBypassed'> {
  if (top.raw('rateLimit') === undefined) return { rate: undefined, isBypassed: () => false }
  const section = top.section('rateLimit')
  const perSecond = section.required<number>('perSecond', PER_SECOND)
  const burst = section.number('burst', Math.max(1, perSecond), { min: 1, max: 10_000_000 })
  const rate: RatePolicy = { perSecond, burst }
  const isBypassed = readBypass(section.section('bypass'))
  section.end()
  return { rate, isBypassed }
}

const PER_SECOND: Check = {
  isValid: (value) => isNumber(value, 0.001, 10_000_000),
  expected: 'a number from 0.001 to 10000000',
}

const SEVERITY: Check = {
  isValid: (value) => SEVERITIES.some((one) => one === value),
  expected: SEVERITIES.map((one) => `'${one}'`).join(' or '),
}

const TYPES: Check = {
  isValid: (value) =>
    Array.isArray(value) && value.every((one) => typeof one === 'string' || one instanceof RegExp),
  expected: "a list of texts or patterns such as ['order.paid', /^audit/]",
}

type Bypass = NonNullable<RateLimitOptions['bypass']>

function readBypass(section: Section): (event: OutboundEvent) => boolean {
  const severity = section.ifGiven<Severity>('severity', SEVERITY)
  const types = section.ifGiven<NonNullable<Bypass['types']>>('types', TYPES) ?? []
  const when = section.ifGiven<NonNullable<Bypass['when']>>('when', FUNCTION)
  section.end()
  const least = severity === undefined ? Number.POSITIVE_INFINITY : SEVERITIES.indexOf(severity)
  const isSevere = ({ headers }: OutboundEvent) =>
    SEVERITIES.indexOf(headers[SEVERITY_HEADER] as Severity) >= least
  const isNamed = ({ type }: OutboundEvent) =>
    types.some((one) => (typeof one === 'string' ? one === type : type.search(one) >= 0))
  // Compared with true, because a promise is truthy.
  return (event) => isSevere(event) || isNamed(event) || when?.(event) === true
}

function readAutoReplay(top: Section): ResolvedEmitter['autoReplay'] {
  if (top.raw('autoReplay') === undefined) return undefined
  const section = top.section('autoReplay')
  const autoReplay = {
    cron: readCron(section, section.raw('schedule')),
    batch: section.integer('batch', REPLAY_BATCH, { min: 1, max: 10_000 }),
    maxAgeMs: section.duration('maxAge', REPLAY_MAX_AGE_MS, KEPT),
  }
  section.end()
  return autoReplay
}

function readCleanup(top: Section): ResolvedEmitter['cleanup'] {
  if (top.raw('cleanup') === undefined) return undefined
  const section = top.section('cleanup')
  const cleanup = {
    cron: readCron(section, section.raw('schedule') ?? CLEANUP_SCHEDULE),
    retentionMs: section.duration('retention', RETENTION_MS, KEPT),
  }
  section.end()
  return cleanup
}

function readCron(section: Section, pattern: unknown): Cron {
  try {
    if (typeof pattern === 'string') return new Cron(pattern, { paused: true })
    section.problem('schedule', `${EXPECTED_CRON}, got ${shown(pattern)}`)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    section.problem('schedule', `${EXPECTED_CRON}, got ${shown(pattern)}: ${why}`)
  }
  return new Cron(CLEANUP_SCHEDULE, { paused: true })
}

const EXPECTED_CRON = "expected a cron expression such as '*/5 * * * *'"
