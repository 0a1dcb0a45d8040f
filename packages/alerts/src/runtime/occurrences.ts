import type { RedriveEvent } from '@redrive/runtime'
import type { AlertFacts } from '../notice.ts'
import type { Condition } from './condition.ts'

/** What an event means for alerts. */
export type Transition =
  /** The condition holds until it is ended. */
  | { readonly begin: Condition }
  | { readonly end: Pick<Condition, 'kind' | 'source' | 'subject'> }
  /** The condition has no end of its own: it ends after a time without another one. */
  | { readonly occurred: Condition; readonly count: number }

type EventOf<Type extends RedriveEvent['type']> = Extract<RedriveEvent, { readonly type: Type }>

const READERS: {
  readonly [Type in RedriveEvent['type']]?: (event: EventOf<Type>) => Transition | undefined
} = {
  breaker_changed({ source, dependency, handler, to }) {
    const kind = 'breaker_open'
    const condition = { kind, source, subject: dependency } as const
    if (to === 'halfOpen') return undefined
    if (to !== 'open') return { end: condition }
    const summary = `The circuit breaker of ${dependency} is open: ${source} waits`
    return { begin: { ...condition, summary, facts: { handler, target: dependency } } }
  },
  enacted: (event) => (event.enactment.kind === 'done' ? ofDecision(event) : undefined),
  flood_detected: ({ source, handler, signature }) =>
    occurred({
      ...{ kind: 'flood', source, subject: signature },
      summary: `Many messages of ${source} become dead letters for the same reason`,
      facts: { handler },
    }),
  hand_off_stuck: ({ source, deliveryId, error }) =>
    occurred({
      ...{ kind: 'hand_off_stuck', source, subject: '' },
      summary: `The broker does not store copies of messages of ${source}`,
      facts: { messageId: deliveryId, error: textOf(error) },
    }),
  messages_expired: ({ source, where, count }) =>
    occurred(
      {
        ...{ kind: 'messages_expired', source, subject: where },
        summary: `The broker deleted messages of ${source} before they were consumed`,
        facts: { target: where },
      },
      count,
    ),
  emission_failed({ source, event, result }) {
    if (result.kind !== 'lost') return undefined
    return occurred({
      ...{ kind: 'event_lost', source, subject: event.type },
      summary: `Events for the sink ${source} were lost`,
      facts: {
        eventType: event.type,
        target: source,
        messageId: event.id,
        error: textOf(result.error),
      },
    })
  },
}

/** Returns what an event means for alerts; undefined: nothing. */
export function transitionOf(event: RedriveEvent): Transition | undefined {
  const read = READERS[event.type] as ((event: RedriveEvent) => Transition | undefined) | undefined
  return read?.(event)
}

const occurred = (occurredCondition: Condition, count = 1): Transition => ({
  occurred: occurredCondition,
  count,
})

function ofDecision({
  at,
  source,
  deliveryId,
  eventType,
  handler,
  decision,
  enactment,
}: EventOf<'enacted'>) {
  if (decision.kind !== 'deadLetter' && decision.kind !== 'quarantine') return undefined
  const { failure, cycle, reason } = decision
  const target = enactment.kind === 'done' ? enactment.target : undefined
  const facts: AlertFacts = {
    handler,
    class: failure.class,
    error: failure.message,
    reason,
    attempts: cycle.runs,
    messageId: deliveryId,
    ...(eventType === undefined ? {} : { eventType }),
    ...(target === undefined ? {} : { target }),
    ...(failure.code === undefined ? {} : { code: failure.code }),
    ...(cycle.firstFailedAt === undefined ? {} : { ageMs: Math.max(0, at - cycle.firstFailedAt) }),
  }
  const subject = `${handler}/${failure.signature}`
  return decision.kind === 'quarantine'
    ? occurred({
        ...{ kind: 'quarantined', source, subject, facts },
        summary: `A poison message of ${source} was quarantined`,
      })
    : occurred({
        ...{ kind: 'dead_letter', source, subject, facts },
        summary: `A message of ${source} became a dead letter: ${failure.message}`,
      })
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
