import type { RedriveEvent } from '@redrive/runtime'
import type { AlertFacts } from '../notice.ts'
import type { Condition } from './condition.ts'

/** An event that is an alert. It has no end: the alert ends after a time without another one. */
export interface Occurrence {
  readonly condition: Condition
  readonly count: number
}

type EventOf<Type extends RedriveEvent['type']> = Extract<RedriveEvent, { readonly type: Type }>

const READERS: {
  readonly [Type in RedriveEvent['type']]?: (event: EventOf<Type>) => Occurrence | undefined
} = {
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

/** Returns the event as an alert; undefined for other events. */
export function occurrenceOf(event: RedriveEvent): Occurrence | undefined {
  const read = READERS[event.type] as ((event: RedriveEvent) => Occurrence | undefined) | undefined
  return read?.(event)
}

const occurred = (condition: Condition, count = 1): Occurrence => ({ condition, count })

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
