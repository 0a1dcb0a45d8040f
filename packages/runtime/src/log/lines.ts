import type { Failure, FailureCycle, Policy } from '@redrive/core'
import type { HungReason, PauseReason, RedriveEvent } from '../events.ts'
import type { Logger } from './logger.ts'
import { countOf, describeError, describeMs, oneLine } from './text.ts'

/** A line of the log, without time and source. */
export interface Line {
  readonly level: keyof Logger
  /** Returns the text. In a storm most lines are omitted, and writing one takes longer than deciding the message. */
  readonly text: () => string
}

export type EventOf<Type extends RedriveEvent['type']> = Extract<RedriveEvent, { type: Type }>
type Describe<Type extends RedriveEvent['type']> = (
  event: EventOf<Type>,
  context: LineContext,
) => Line | undefined

/** What a line says besides its event. */
export interface LineContext {
  readonly lastFailed: EventOf<'attempt_failed'> | undefined
  readonly policy: Pick<Policy, 'timeoutMs' | 'onBreakerOpen'>
}

/** 5 min: a message that fails for longer than this needs attention. */
const LONG_FAILING_MS = 300_000
/** 30 s: the default timeout. A next run is assumed to end sooner, unless this one timed out. */
const USUAL_RUN_MS = 30_000
/** 30 s: the end of a delay and of a timeout may be that late. */
const SLACK_MS = 30_000

/** Returns the line of an event; undefined for events of normal operation. */
export function lineOf(event: RedriveEvent, context: LineContext): Line | undefined {
  const describe = LINES[event.type] as Describe<RedriveEvent['type']> | undefined
  return describe?.(event, context)
}

/** Returns the kind of an event. Lines of the same kind are limited together. */
export function kindOf(event: RedriveEvent): string {
  return event.type === 'enacted' ? event.decision.kind : event.type
}

const LINES: { readonly [Type in RedriveEvent['type']]?: Describe<Type> } = {
  attempt_failed: describeFailing,
  enacted: describeEnacted,
  breaker_changed: describeBreaker,
  flood_detected: ({ signature }) =>
    warn(
      () =>
        `Many messages fail in the same way (signature ${signature}). Look at their dead letters.`,
    ),
  handler_hung: ({ deliveryId, reason, hung }) =>
    error(
      () =>
        `The handler of message ${deliveryId} did not end after ${HUNG[reason]}. ${countOf(hung, 'handler')} of this consumer did not end. Pass context.signal to each call that waits.`,
    ),
  consumer_paused: ({ reason }) => {
    const cause = PAUSES[reason]
    return cause === undefined ? undefined : warn(() => `Paused: ${cause}.`)
  },
  connection_lost: (event) =>
    error(
      () => `Lost the connection to the broker, connecting again: ${describeError(event.error)}`,
    ),
  connection_restored: () => warn(() => 'Connected to the broker again.'),
  hand_off_stuck: (event) =>
    error(
      () =>
        `The broker ${event.isRefused ? 'rejects' : 'does not confirm'} the copy of message ${event.deliveryId}, trying again: ${describeError(event.error)}`,
    ),
  broker_blocked: ({ reason }) =>
    reason === undefined
      ? warn(() => 'The broker accepts messages again.')
      : warn(() => `The broker accepts no messages: ${oneLine(reason)}`),
  messages_expired: ({ count, where }) =>
    error(
      () =>
        `The broker deleted ${countOf(count, 'message')} of ${where} before they were consumed.`,
    ),
  topic_missing: ({ where, problem }) =>
    problem === undefined
      ? warn(() => `The topic ${where} exists again. It is read.`)
      : error(() => oneLine(problem)),
  topic_recreated: ({ where }) =>
    warn(
      () =>
        `The topic of ${where} was deleted and created again. It is read from its first record.`,
    ),
  headers_unreadable: ({ deliveryId, problems }) =>
    warn(
      () => `Headers of message ${deliveryId} could not be read: ${oneLine(problems.join(' '))}`,
    ),
  user_code_failed: (event) => error(() => `${event.where} failed: ${describeError(event.error)}`),
}

/** The reason for which the signal of a hung handler was aborted, as a part of its line. */
const HUNG: Readonly<Record<HungReason, string>> = {
  timeout: 'its timeout',
  lost: 'the broker took its delivery back',
  stopping: 'the consumer stopped',
}

/** The pauses that need attention. Others have a line of their own, or a user requested them. */
const PAUSES: Partial<Record<PauseReason, string>> = {
  flood: 'all messages fail in the same way',
  hand_off_failing: 'the broker does not confirm copies',
  handlers_hung: 'handlers that do not end hold every slot',
}

/** Describes a failure when the next one may be more than five minutes after the first. */
function describeFailing(
  event: EventOf<'attempt_failed'>,
  { policy }: LineContext,
): Line | undefined {
  const { at, deliveryId, firstFailedAt, retryAt, runs } = event
  if (retryAt === undefined) return undefined
  const runMs = event.code === 'ATTEMPT_TIMEOUT' ? policy.timeoutMs : USUAL_RUN_MS
  const nextFailureAt = retryAt + runMs + SLACK_MS
  if (nextFailureAt - firstFailedAt < LONG_FAILING_MS) return undefined
  const since = describeMs(at - firstFailedAt)
  return warn(
    () =>
      `Message ${deliveryId} failed ${countOf(runs, 'time')} in ${since}, next run in ${describeMs(retryAt - at)}: ${failureOf(event)}`,
  )
}

function describeEnacted(event: EventOf<'enacted'>): Line | undefined {
  const { deliveryId, decision, enactment } = event
  if (enactment.kind !== 'done') return undefined
  const where = enactment.target === undefined ? '' : ` in ${enactment.target}`
  if (decision.kind === 'deadLetter') {
    return warn(
      () => `Message ${deliveryId} is now a dead letter${where} (${describeEnd(decision)}`,
    )
  }
  if (decision.kind === 'quarantine') {
    return warn(() => `Message ${deliveryId} was quarantined${where} (${describeEnd(decision)}`)
  }
  return undefined
}

function describeEnd(end: {
  readonly reason: string
  readonly failure: Failure
  readonly cycle: FailureCycle
}): string {
  return `${end.reason}, ${countOf(end.cycle.runs, 'run')}): ${describeFailure(end.failure)}`
}

/** What happens to messages while a breaker is open. */
const EFFECTS: Readonly<Record<Policy['onBreakerOpen'], string>> = {
  pause: 'none is consumed',
  deadLetter: 'each one becomes a dead letter without a run',
}

function describeBreaker(
  event: EventOf<'breaker_changed'>,
  { lastFailed, policy }: LineContext,
): Line | undefined {
  const { source, dependency, from, to, at, until } = event
  const breaker = dependency === source ? 'The breaker' : `The breaker of "${dependency}"`
  if (to === 'closed') return warn(() => `${breaker} closed: messages pass again.`)
  // Each failed probe opens it again. One line for an outage is enough.
  if (to !== 'open' || from !== 'closed') return undefined
  const next = until === undefined ? '' : `, next probe in ${describeMs(until - at)}`
  const cause = lastFailed === undefined ? '' : `: ${failureOf(lastFailed)}`
  const effect = EFFECTS[policy.onBreakerOpen]
  return warn(() => `${breaker} opened: messages fail, so ${effect}${next}${cause}`)
}

function failureOf({ errorType: type, code, message }: EventOf<'attempt_failed'>): string {
  return describeFailure({ type, code, message })
}

type FailureText = Pick<Failure, 'type' | 'code' | 'message'>

function describeFailure({ type, code, message }: FailureText): string {
  const isNamed = code === undefined || message.includes(code)
  return oneLine(`${type}: ${message}${isNamed ? '' : ` (${code})`}`)
}

const warn = (text: Line['text']): Line => ({ level: 'warn', text })
const error = (text: Line['text']): Line => ({ level: 'error', text })
