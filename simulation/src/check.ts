import { decodeHeaders } from '@redrive/core'
import type { MemoryMessage } from '@redrive/memory'
import type { Fact } from './history.ts'
import { MAX_ATTEMPTS, type PlannedMessage, type Scenario } from './scenario.ts'

export interface Violation {
  /** Which invariant: I1 … I8. */
  readonly invariant: string
  readonly text: string
}

export interface CheckInput {
  readonly scenario: Scenario
  readonly facts: readonly Fact[]
  readonly isDrained: boolean
  readonly left: readonly MemoryMessage[]
  readonly deadLetters: readonly MemoryMessage[]
  readonly quarantined: readonly MemoryMessage[]
}

/**
 * Holds the history against the promises. It knows nothing of how the code works.
 *
 * | I1 | every accepted message ends in exactly one place: effect, dead letter or quarantine |
 * | I2 | copies and effects beyond one are explained by a disruption; with the inbox, effects never |
 * | I3 | counted attempts stay within the limit and every counted failure moves the count |
 * | I4 | no retry runs before its time |
 * | I5 | in order, the effects of a lane come in the order they were sent |
 * | I6 | when everything is well again, everything drains |
 * | I7 | what was reported is what happened: no dead letter on record that is not there |
 * | I8 | a good message is never given up |
 */
export function checkRun(input: CheckInput): readonly Violation[] {
  const world = index(input)
  return [
    ...checkPlaces(input, world),
    ...checkAttempts(input, world),
    ...checkNeverEarly(input, world),
    ...checkTrials(input, world),
    ...(input.scenario.isOrdered ? checkOrder(input, world) : []),
    ...(input.isDrained
      ? []
      : [violation('I6', `not drained: ${input.left.map((one) => one.id).join(' ')}`)]),
    ...checkRecord(input),
    ...checkDeadLetters(input),
  ]
}

const violation = (invariant: string, text: string): Violation => ({ invariant, text })

interface World {
  readonly sent: ReadonlyMap<string, number>
  readonly effects: ReadonlyMap<string, number>
  readonly disruptions: ReadonlyMap<string, number>
  readonly deadLetters: ReadonlyMap<string, number>
  readonly quarantined: ReadonlyMap<string, number>
}

function index({ facts, deadLetters, quarantined }: CheckInput): World {
  const countFacts = (what: 'sent' | 'effect' | 'disrupted') =>
    tally(facts.flatMap((fact) => (fact.what === what ? [fact.id] : [])))
  return {
    sent: countFacts('sent'),
    effects: countFacts('effect'),
    disruptions: countFacts('disrupted'),
    deadLetters: tally(deadLetters.map((one) => one.id)),
    quarantined: tally(quarantined.map((one) => one.id)),
  }
}

function tally(ids: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

const of = (counts: ReadonlyMap<string, number>, id: string) => counts.get(id) ?? 0

function checkPlaces(input: CheckInput, world: World): readonly Violation[] {
  const { scenario, isDrained } = input
  const found: Violation[] = []
  for (const message of scenario.messages) {
    const { id } = message
    const effects = of(world.effects, id)
    const given = of(world.deadLetters, id) + of(world.quarantined, id)
    const allowed = of(world.sent, id) + of(world.disruptions, id)
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
    found.push(...checkVerdict(message, effects, given, input, world))
  }
  const known = new Set(scenario.messages.map((message) => message.id))
  for (const id of [
    ...world.effects.keys(),
    ...world.deadLetters.keys(),
    ...world.quarantined.keys(),
  ]) {
    if (!known.has(id)) found.push(violation('I1', `${id} is unexpected`))
  }
  return found
}

/** What must come of each kind of message. */
function checkVerdict(
  message: PlannedMessage,
  effects: number,
  given: number,
  { scenario, quarantined }: CheckInput,
  world: World,
): readonly Violation[] {
  const isBad =
    message.kind === 'poison' || message.kind === 'business' || message.kind === 'crasher'
  if (isBad && effects > 0) return [violation('I1', `${message.id} (${message.kind}) took effect`)]
  if (isBad || given === 0) return []
  // While a dependency answers only some of the time, five failures of one message may be random.
  const isPartial = scenario.faults.some((fault) => fault.kind === 'outage' && fault.share < 1)
  // A message that was in hand at five deaths is rightly suspected, whoever caused them.
  const isUnlucky =
    of(world.disruptions, message.id) >= 5 &&
    quarantined.some(
      (one) => one.id === message.id && one.headers['redrive-reason'] === 'crash_loop',
    )
  return isPartial || isUnlucky
    ? []
    : [violation('I8', `${message.id} (${message.kind}) was given up although it is good`)]
}

function checkAttempts({ facts, scenario }: CheckInput, world: World): readonly Violation[] {
  const found: Violation[] = []
  const failures = new Map<string, number>()
  for (const fact of facts) {
    if (fact.what === 'attempt' && fact.number > MAX_ATTEMPTS) {
      found.push(violation('I3', `${fact.id}: attempt ${fact.number} of at most ${MAX_ATTEMPTS}`))
    }
    if (fact.what === 'event' && fact.event.type === 'attempt_failed' && fact.event.counted) {
      const key = `${fact.event.deliveryId} attempt ${fact.event.attemptNumber}`
      failures.set(key, (failures.get(key) ?? 0) + 1)
    }
  }
  for (const [key, count] of failures) {
    const id = key.slice(0, key.indexOf(' '))
    const allowed = of(world.sent, id) + of(world.disruptions, id) + forgotten(scenario, facts, id)
    if (count > allowed)
      found.push(violation('I3', `${key}: counted ${count} times, ${allowed} explained`))
  }
  return [...found, ...checkSick(facts)]
}

/**
 * Attempts that were rightly forgotten. In order, a message that is given back keeps its place and
 * loses the attempts only this process knew of. A stop during a hand-off that gets no answer leaves
 * the message as it was.
 */
function forgotten(scenario: Scenario, facts: readonly Fact[], id: string): number {
  const copies = facts.filter((fact) => fact.what === 'sent' && fact.id === id).length
  const enacted = facts.flatMap((fact) =>
    fact.what === 'event' && fact.event.type === 'enacted' && fact.event.deliveryId === id
      ? [fact.event]
      : [],
  )
  const returns = enacted.filter(({ decision }) => decision.kind === 'pause').length
  const isUnanswered = enacted.some(({ enactment }) => enactment.kind === 'unknown')
  const stops = scenario.faults.filter((fault) => fault.kind === 'redeploy').length
  return (scenario.isOrdered ? returns : 0) + (isUnanswered ? stops * copies : 0)
}

/** While everything is refused, attempts count only until someone notices: five in a row per process. */
function checkSick(facts: readonly Fact[]): readonly Violation[] {
  const found: Violation[] = []
  let isOpen = false
  for (const fact of facts) {
    if (fact.what === 'started') isOpen = false
    if (fact.what !== 'event') continue
    const { event } = fact
    if (event.type === 'breaker_changed') isOpen = event.to === 'open'
    if (
      event.type === 'attempt_failed' &&
      event.counted &&
      isOpen &&
      event.class === 'transient' &&
      soleProcess(facts)
    ) {
      found.push(
        violation('I8', `${event.deliveryId}: an attempt was counted while the breaker was open`),
      )
    }
  }
  return found
}

function soleProcess(facts: readonly Fact[]): boolean {
  return facts.every((fact) => fact.what !== 'attempt' || fact.process === 0)
}

/** A retry that was decided with a delay must not run sooner than that. */
function checkNeverEarly({ facts, scenario }: CheckInput, world: World): readonly Violation[] {
  const found: Violation[] = []
  // With several copies under way nobody can tell which of them a decision was about.
  const isSingle = (id: string) =>
    of(world.sent, id) === 1 &&
    of(world.disruptions, id) === 0 &&
    forgotten(scenario, facts, id) === 0
  const due = new Map<string, number[]>()
  const plan = (id: string, number: number, at: number) => {
    const key = `${id} ${number}`
    due.set(key, [...(due.get(key) ?? []), at])
  }
  const failed = new Map<string, { readonly at: number; readonly number: number }>()
  for (const fact of facts) {
    const event = fact.what === 'event' ? fact.event : undefined
    if (event?.type === 'attempt_failed') {
      const number = event.attemptNumber + (event.counted ? 1 : 0)
      failed.set(event.deliveryId, { at: fact.at, number })
    }
    // Measured from the failure, which is before the hand-off: never too strict.
    if (event?.type === 'inline_retry') {
      const { at, number } = failed.get(event.deliveryId) ?? { at: fact.at, number: 1 }
      plan(event.deliveryId, number, at + event.delayMs)
    }
    if (event?.type === 'enacted' && event.decision.kind === 'retryAt') {
      const { cycle, delayMs } = event.decision
      const from = failed.get(event.deliveryId)?.at ?? fact.at
      plan(event.deliveryId, cycle.attempts + 1, cycle.notBefore ?? from + delayMs)
    }
    if (fact.what === 'attempt' && fact.number > 1 && isSingle(fact.id)) {
      const planned = due.get(`${fact.id} ${fact.number}`)
      if (planned !== undefined && planned.every((at) => at > fact.at)) {
        found.push(
          violation(
            'I4',
            `${fact.id}: attempt ${fact.number} ran ${Math.min(...planned) - fact.at} ms early`,
          ),
        )
      }
    }
  }
  return found
}

/**
 * A message known to have been in hand at two deaths runs alone: nothing else is there when it kills
 * again, except what the broker refuses to take.
 */
function checkTrials({ facts }: CheckInput, world: World): readonly Violation[] {
  const found: Violation[] = []
  const deaths = new Map<string, number>()
  const refused = new Set<string>()
  for (const fact of facts) {
    if (fact.what === 'event' && fact.event.type === 'enacted') {
      const { deliveryId, enactment } = fact.event
      // For good: another copy of it may have gone through.
      if (enactment.kind === 'unknown') refused.add(deliveryId)
    }
    if (fact.what === 'disrupted' && fact.why === 'process died') {
      deaths.set(fact.id, of(deaths, fact.id) + 1)
    }
    if (fact.what !== 'died' || fact.handling === undefined) continue
    if (of(deaths, fact.handling) < 2 || of(world.sent, fact.handling) > 1) continue
    const others = fact.inHand.filter(
      (id) => id !== fact.handling && !refused.has(id) && of(world.sent, id) === 1,
    )
    if (others.length > 0) {
      const text = `${fact.handling}, a suspect, killed a process that also held ${others.join(' ')}`
      found.push(violation('I8', text))
    }
  }
  return found
}

function checkOrder({ facts, scenario }: CheckInput, world: World): readonly Violation[] {
  const found: Violation[] = []
  const place = new Map(
    facts.flatMap((fact, at) => (fact.what === 'sent' ? [[fact.id, at] as const] : [])).reverse(),
  )
  const lanes = new Map(scenario.messages.map((message) => [message.id, message.lane]))
  const last = new Map<string, number>()
  const seen = new Set<string>()
  for (const fact of facts) {
    if (fact.what !== 'effect' || seen.has(fact.id) || of(world.disruptions, fact.id) > 0) continue
    seen.add(fact.id)
    const lane = lanes.get(fact.id) ?? ''
    const at = place.get(fact.id) ?? 0
    if (at < (last.get(lane) ?? -1))
      found.push(violation('I5', `${fact.id} took effect after a later one of ${lane}`))
    last.set(lane, Math.max(at, last.get(lane) ?? -1))
  }
  return found
}

function checkRecord({ facts, deadLetters, quarantined }: CheckInput): readonly Violation[] {
  const there = new Set([...deadLetters, ...quarantined].map((one) => one.id))
  return facts.flatMap((fact) => {
    if (fact.what !== 'event' || fact.event.type !== 'enacted') return []
    const { enactment, deliveryId } = fact.event
    const isGiven =
      enactment.kind === 'done' &&
      (enactment.place === 'dead_letter' || enactment.place === 'quarantine')
    return isGiven && !there.has(deliveryId)
      ? [violation('I7', `${deliveryId} is on record as given up and is not there`)]
      : []
  })
}

/** A dead letter keeps what a person needs to replay it. */
function checkDeadLetters({ deadLetters, quarantined }: CheckInput): readonly Violation[] {
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
            `${message.id}: its dead letter is not whole: ${JSON.stringify(message.headers)}`,
          ),
        ]
  })
}
