import { decodeHeaders } from '@redrive/core'
import { type CheckInput, type Violation, violation } from './evidence.ts'

/** I7: checks that every reported dead letter exists. */
export function checkReports({
  facts,
  deadLetters,
  quarantined,
}: CheckInput): readonly Violation[] {
  const there = new Set([...deadLetters, ...quarantined].map((one) => one.id))
  return facts.flatMap((fact) => {
    if (fact.what !== 'event' || fact.event.type !== 'enacted') return []
    const { enactment, deliveryId } = fact.event
    const isGiven =
      enactment.kind === 'done' &&
      (enactment.destination === 'dead_letter' || enactment.destination === 'quarantine')
    return isGiven && !there.has(deliveryId)
      ? [violation('I7', `${deliveryId} is reported as dead-lettered but does not exist`)]
      : []
  })
}

/** I1: checks that a dead letter contains what a person needs to replay it. */
export function checkDeadLetters({ deadLetters, quarantined }: CheckInput): readonly Violation[] {
  return [...deadLetters, ...quarantined].flatMap((message) => {
    const { cycle, foreign, source, problems } = decodeHeaders(message.headers)
    const isWhole =
      new TextDecoder().decode(message.bytes) === JSON.stringify({ id: message.id }) &&
      foreign['x-trace'] === message.id &&
      source === 'orders' &&
      problems.length === 0 &&
      (message.headers['redrive-reason'] === 'crash_loop' ||
        (cycle.attempts === cycle.history.length &&
          cycle.attempts > 0 &&
          cycle.firstFailedAt !== undefined))
    return isWhole
      ? []
      : [
          violation(
            'I1',
            `${message.id}: its dead letter is incomplete: ${JSON.stringify(message.headers)}`,
          ),
        ]
  })
}
