import type { PlannedMessage } from '../scenario.ts'
import { type CheckInput, type Counts, of, type Violation, violation } from './evidence.ts'

/** I1, I2 and I8: checks where every message ended, and how often. */
export function checkPlaces(input: CheckInput, counts: Counts): readonly Violation[] {
  const { scenario, isDrained } = input
  const found: Violation[] = []
  for (const message of scenario.messages) {
    const { id } = message
    const effects = of(counts.effects, id)
    const given = of(counts.deadLetters, id) + of(counts.quarantined, id)
    const allowed = of(counts.sent, id) + of(counts.disruptions, id)
    if (isDrained && effects + given === 0)
      found.push(violation('I1', `${id} (${message.kind}) is lost`))
    if (effects + given > allowed) {
      found.push(
        violation(
          'I2',
          `${id}: ${effects} effects and ${given} dead letters, ${allowed} explained`,
        ),
      )
    }
    if (scenario.hasInbox && effects > 1)
      found.push(violation('I2', `${id}: ${effects} effects with an inbox`))
    found.push(...checkVerdict(message, effects, given, input, counts))
  }
  const known = new Set(scenario.messages.map((message) => message.id))
  for (const id of [
    ...counts.effects.keys(),
    ...counts.deadLetters.keys(),
    ...counts.quarantined.keys(),
  ]) {
    if (!known.has(id)) found.push(violation('I1', `${id} is unexpected`))
  }
  return found
}

/** Checks the expected outcome of each kind of message. */
function checkVerdict(
  message: PlannedMessage,
  effects: number,
  given: number,
  { scenario, quarantined }: CheckInput,
  counts: Counts,
): readonly Violation[] {
  const isBad =
    message.kind === 'poison' || message.kind === 'business' || message.kind === 'crasher'
  if (isBad && effects > 0) return [violation('I1', `${message.id} (${message.kind}) took effect`)]
  if (isBad || given === 0) return []
  // While a dependency responds only some of the time, five failures of one message may be random.
  const isPartial = scenario.faults.some((fault) => fault.kind === 'outage' && fault.share < 1)
  // A message that was in flight at five deaths is correctly suspected, whatever caused them.
  const isUnlucky =
    of(counts.disruptions, message.id) >= 5 &&
    quarantined.some(
      (one) => one.id === message.id && one.headers['redrive-reason'] === 'crash_loop',
    )
  return isPartial || isUnlucky
    ? []
    : [violation('I8', `${message.id} (${message.kind}) was dead-lettered although it is good`)]
}
