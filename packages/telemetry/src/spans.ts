import {
  context,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import { parseTraceparent } from '@redrive/core/internal'
import type { RedriveEvent } from '@redrive/runtime'
import type { InstrumentedRun } from '@redrive/runtime/internal'
import type { AroundRun } from './observe.ts'
import type { SystemAttributes } from './semantic-conventions.ts'

/**
 * Runs each handler in a span `process {source}`. The span begins a trace: a message may wait for days
 * before it runs. Links lead to the trace of the producer and to the run before.
 */
export const spansAround =
  (tracer: Tracer, systemOf: SystemAttributes): AroundRun =>
  (info, run) => {
    const { delivery, failures } = info
    const span = tracer.startSpan(
      `process ${delivery.source}`,
      {
        kind: SpanKind.CONSUMER,
        root: true,
        links: linksOf(info),
        attributes: attributesOf(info, systemOf),
      },
      ROOT_CONTEXT,
    )
    info.setTrace(traceparentOf(span.spanContext()))
    const result = context.with(trace.setSpan(context.active(), span), run)
    return {
      result,
      onEnd: ({ error }) => {
        if (error !== undefined) {
          const cause = asError(error.cause)
          span.recordException(cause)
          span.setAttribute('error.type', cause.name)
          span.setStatus({ code: SpanStatusCode.ERROR, message: cause.message })
        }
        span.setAttribute('redrive.runs', failures.runs + 1)
        span.end()
      },
    }
  }

function attributesOf(
  { delivery, failures, handler, dependency, system }: InstrumentedRun,
  systemOf: SystemAttributes,
) {
  const { source, id, bytes, replayId } = delivery
  return {
    ...systemOf(system),
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.name': source,
    'messaging.message.id': id,
    'messaging.message.body.size': bytes.byteLength,
    'redrive.handler': handler,
    'redrive.dependency': dependency,
    'redrive.attempt': failures.attempts + 1,
    'redrive.cycle': failures.number,
    ...(replayId === undefined ? {} : { 'redrive.replay_id': unsigned(replayId) }),
  }
}

/**
 * Returns a replay id as the console shows it. The server appends a signature (`.1.x7…`), which proves who published
 * the replay. Readers of traces must not get it.
 */
const unsigned = (replayId: string) => /^[\da-f-]{36}(?=\.)/.exec(replayId)?.[0] ?? replayId

/** Returns links to the producer, to the run before, and for a replay to the last run of the cycle before. */
function linksOf({ delivery, failures }: InstrumentedRun): Link[] {
  const previous = failures.history.at(-1)?.trace
  return [
    ...linkTo(textOf(delivery.headers['traceparent']), 'creation'),
    ...linkTo(previous, 'previous_run'),
    ...(previous === undefined ? linkTo(failures.trace, 'previous_cycle') : []),
  ]
}

function linkTo(traceparent: string | undefined, kind: string): readonly Link[] {
  const linked = spanContextOf(traceparent)
  return linked === undefined ? [] : [{ context: linked, attributes: { 'redrive.link': kind } }]
}

/** Some clients return header values as bytes. */
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string'
    ? value
    : value instanceof Uint8Array
      ? Buffer.from(value).toString('latin1')
      : undefined

const asError = (cause: unknown): Error =>
  cause instanceof Error ? cause : new Error(String(cause))

/** Writes a span `retry`, `dead_letter`, `quarantine` or `drop {source}` as a child of the run that failed. */
export function recordDecision(tracer: Tracer, event: RedriveEvent): void {
  if (event.type !== 'enacted' || event.enactment.kind !== 'done') return
  const { decision, source, deliveryId, handler, at } = event
  const name = SPAN_NAMES[decision.kind]
  if (name === undefined || decision.kind === 'settle' || decision.kind === 'pause') return
  const failed = decision.cycle?.history.at(-1)
  const parent = spanContextOf(failed?.trace)
  if (failed === undefined || parent === undefined) return
  const { target } = event.enactment
  const span = tracer.startSpan(
    `${name} ${source}`,
    {
      kind: SpanKind.PRODUCER,
      startTime: failed.at,
      attributes: {
        'messaging.destination.name': target ?? source,
        'messaging.message.id': deliveryId,
        'redrive.handler': handler,
        'redrive.decision': name,
        'redrive.reason': decision.reason,
        'redrive.class': failed.class,
        'redrive.attempts': decision.cycle.attempts,
        'redrive.runs': decision.cycle.runs,
        ...(decision.kind === 'retryAt' ? { 'redrive.delay_ms': decision.delayMs } : {}),
      },
    },
    trace.setSpanContext(ROOT_CONTEXT, parent),
  )
  span.end(Math.max(at, failed.at))
}

const SPAN_NAMES: Readonly<Record<string, string | undefined>> = {
  retryAt: 'retry',
  deadLetter: 'dead_letter',
  quarantine: 'quarantine',
  drop: 'drop',
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

function spanContextOf(traceparent: string | undefined): SpanContext | undefined {
  const parsed = parseTraceparent(traceparent)
  if (parsed === undefined) return undefined
  const { traceId, spanId, flags } = parsed
  return { traceId, spanId, traceFlags: flags & TraceFlags.SAMPLED, isRemote: true }
}
