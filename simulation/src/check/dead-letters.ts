import { decodeHeaders, type FailureCycle } from '@redrive/core'
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
      cycle.firstFailedAt !== undefined &&
      isHistoryWhole(cycle)
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

/** 10: the default of `retry.history`. */
const HISTORY_LIMIT = 10

/** Every failure has a record, up to the limit. Uncounted records are omitted first. */
function isHistoryWhole({ attempts, runs, history }: FailureCycle): boolean {
  const failures = history.at(-1)?.number ?? 0
  return (
    failures > 0 &&
    failures >= runs &&
    history.length === Math.min(failures, HISTORY_LIMIT) &&
    history.filter(({ counted }) => counted).length === attempts &&
    history.every(({ type }) => type !== undefined)
  )
}
