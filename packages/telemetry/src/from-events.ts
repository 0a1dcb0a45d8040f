import type { Decision } from '@redrive/core'
import type { Enactment, RedriveEvent } from '@redrive/runtime'
import type { Measurement } from './metrics.ts'

type Enacted = Extract<RedriveEvent, { type: 'enacted' }>
type EmissionFailed = Extract<RedriveEvent, { type: 'emission_failed' }>

const NONE: readonly Measurement[] = []

/** Returns what an event adds to counters and histograms. */
export function measure(event: RedriveEvent): readonly Measurement[] {
  const { source } = event
  switch (event.type) {
    case 'attempt_failed': {
      const { handler, errorType: error_type } = event
      const labels = { source, handler, class: event.class, error_type }
      return [{ metric: 'redrive.consumer.failure', value: 1, labels }]
    }
    case 'enacted':
      return isDone(event.enactment) ? ofDecision(event) : NONE
    case 'inline_retry':
      return one('redrive.retry.attempt', { source, where: 'process' })
    case 'budget_exhausted':
      return one('redrive.retry.rate_limited', { source })
    case 'flood_detected':
      return one('redrive.dlq.flood', { source })
    case 'hand_off_stuck':
      return one('redrive.dlq.write_failed', { source })
    case 'limit_shrunk':
      return one('redrive.concurrency.shrunk', { source })
    case 'breaker_changed': {
      const { dependency, to } = event
      return one('redrive.circuit_breaker.transition', { dependency, to })
    }
    case 'consumer_paused':
      return one('redrive.consumer.paused', { source, reason: event.reason })
    case 'connection_lost':
      return one('redrive.consumer.connection_lost', { source })
    case 'messages_expired':
      return one('redrive.consumer.messages_expired', { source }, event.count)
    case 'headers_unreadable':
      return one('redrive.consumer.headers_unreadable', { source })
    case 'user_code_failed':
      return one('redrive.consumer.user_code_failed', { source, where: event.where })
    case 'emission_failed':
      return [ofEmission(event)]
    case 'replayed':
      return [
        ...one('redrive.dlq.replayed', { sink: source }, event.replayed),
        ...one('redrive.dlq.replay_failed', { sink: source }, event.failed),
      ]
    case 'cleaned_up':
      return one('redrive.dlq.cleaned_up', {}, event.count)
    // State, which is read when metrics are collected.
    case 'handler_hung':
    case 'consumer_resumed':
    case 'connection_restored':
    case 'assignment_changed':
    case 'broker_blocked':
    case 'topic_missing':
    case 'topic_recreated':
      return NONE
  }
}

function one(
  metric: Measurement['metric'],
  labels: Measurement['labels'],
  value = 1,
): readonly Measurement[] {
  return value === 0 ? NONE : [{ metric, value, labels }]
}

const isDone = (enactment: Enactment) => enactment.kind === 'done'

function ofDecision({ source, handler, decision }: Enacted): readonly Measurement[] {
  const labels = { source, handler }
  switch (decision.kind) {
    case 'retryAt': {
      const { failure } = decision
      // Only the rest of a split delay has no failure: the retry was counted before.
      if (failure === undefined) return NONE
      return one('redrive.retry.attempt', { ...labels, class: failure.class, where: 'broker' })
    }
    case 'deadLetter':
      return ofDeadLetter(labels, decision)
    case 'quarantine':
      return one('redrive.dlq.quarantined', { ...labels, reason: decision.reason })
    case 'drop':
      return one('redrive.dlq.filtered_out', { ...labels, reason: decision.reason })
    case 'settle':
    case 'pause':
      return NONE
  }
}

function ofDeadLetter(
  labels: { readonly source: string; readonly handler: string },
  { reason, failure, cycle }: Extract<Decision, { kind: 'deadLetter' }>,
): readonly Measurement[] {
  const { class: failureClass, type: error_type } = failure
  return [
    ...one('redrive.dlq.saved', { ...labels, class: failureClass, reason, error_type }),
    ...one('redrive.dlq.attempts', labels, cycle.runs),
    ...(reason === 'terminal'
      ? one('redrive.retry.permanent_failure', { ...labels, class: failureClass })
      : one('redrive.retry.exhausted', { ...labels, reason })),
  ]
}

function ofEmission({ source: sink, result }: EmissionFailed): Measurement {
  const reason = result.kind === 'lost' ? 'store_failed' : result.reason
  return {
    metric: 'redrive.emitter.failure',
    value: 1,
    labels: { sink, result: result.kind, reason },
  }
}
