import type { Evidence, Figures, FoundMessage, Rule, Verdict, Violation } from './evidence.ts'
import { END_OF, type End, type Kind } from './message.ts'

/** 60 s after the end of the fault, no message may be waiting any more. */
export const RECOVERY_BOUND_S = 60

/** Compares the evidence with the promises. It shares no code with the system that it checks. */
export function check(evidence: Evidence): Verdict {
  const world = index(evidence)
  const violations = [
    ...checkEach(world),
    ...checkUnexpected(world),
    ...checkFenced(world),
    ...checkBound(world),
    ...checkRecovery(world),
    ...checkDeaths(world),
  ]
  return { figures: figuresOf(world, violations), violations }
}

interface World extends Evidence {
  readonly kinds: ReadonlyMap<string, Kind>
  readonly acknowledged: ReadonlySet<string>
  /** Number of successful handler runs, by message. */
  readonly successes: ReadonlyMap<string, number>
  readonly places: ReadonlyMap<string, readonly FoundMessage[]>
  readonly seen: ReadonlySet<string>
}

function index(evidence: Evidence): World {
  const kinds = new Map<string, Kind>()
  const acknowledged = new Set<string>()
  const successes = new Map<string, number>()
  const seen = new Set<string>(evidence.effects.keys())
  for (const entry of evidence.entries) {
    if (entry.what === 'attempted') kinds.set(entry.id, entry.kind)
    if (entry.what === 'acknowledged') acknowledged.add(entry.id)
    if (entry.what === 'handler_started') seen.add(entry.id)
    if (entry.what === 'effect') successes.set(entry.id, (successes.get(entry.id) ?? 0) + 1)
  }
  const places = Map.groupBy(evidence.found, ({ id }) => id)
  for (const id of [...successes.keys(), ...places.keys()]) seen.add(id)
  return { ...evidence, kinds, acknowledged, successes, places, seen }
}

/** Returns where a message is now: an effect, or a queue; several when it is in several. */
function endsOf({ effects, places }: World, id: string): readonly (End | 'source')[] {
  const queues = (places.get(id) ?? []).map(({ place }) => place)
  // A consumer's own record does not count as an effect. A consumer killed after its commit cannot
  // write one, and a consumer may wrongly treat a message as handled.
  return [...(effects.has(id) ? (['effect'] as const) : []), ...queues]
}

function checkEach(world: World): readonly Violation[] {
  const found: Violation[] = []
  for (const [id, kind] of world.kinds) {
    const ends = endsOf(world, id)
    const expected = END_OF[kind]
    found.push(...checkLost(world, id, kind, ends.length === 0))
    for (const end of new Set(ends)) {
      if (end !== expected) found.push({ ...misplaced(kind, expected, end), id })
    }
    const effects = world.effects.get(id) ?? 0
    if (effects > 1) {
      found.push({ rule: 'effect duplicated', id, text: `took effect ${effects} times` })
    }
    if (world.places.get(id)?.some(({ isWhole }) => !isWhole) === true) {
      found.push({ rule: 'changed', id, text: 'its bytes differ from the sent ones' })
    }
  }
  return found
}

function checkLost(
  { acknowledged, committed }: World,
  id: string,
  kind: Kind,
  isNowhere: boolean,
): readonly Violation[] {
  const lost = (text: string) => [{ rule: 'lost', id, text: `${kind}, ${text}` } as const]
  if (acknowledged.has(id)) {
    if (isNowhere) return lost('acknowledged and not found anywhere')
    return committed?.has(id) === false
      ? lost('acknowledged, but its business fact is missing')
      : []
  }
  return isNowhere && committed?.has(id) === true
    ? lost('not found anywhere, although its business fact exists')
    : []
}

function misplaced(kind: Kind, expected: End, end: End | 'source'): Violation {
  if (end === 'source' || end === 'delay') {
    return { rule: 'not drained', text: `${kind}, still in the ${end} queue` }
  }
  const isGivenUp = end === 'dlq' || end === 'quarantine'
  return isGivenUp && expected === 'effect'
    ? { rule: 'false dead letter', text: `${kind}, dead-lettered into ${end}` }
    : { rule: 'in the wrong place', text: `${kind}, in ${end} instead of ${expected}` }
}

function checkUnexpected({ seen, kinds, acknowledged, committed }: World): readonly Violation[] {
  const violations: Violation[] = []
  for (const id of seen) {
    if (!kinds.has(id)) violations.push({ rule: 'unexpected', id, text: 'seen, but never sent' })
    else if (committed?.has(id) === false && !acknowledged.has(id)) {
      const text = 'seen, but its transaction was never committed'
      violations.push({ rule: 'unexpected', id, text })
    }
  }
  return violations
}

/**
 * Checks that a lease has one owner at a time. A second owner must get the result that the message
 * is lost.
 */
function checkFenced({ entries }: World): readonly Violation[] {
  const settled = entries.filter((entry) => entry.what === 'settled')
  return [...Map.groupBy(settled, ({ id }) => id)]
    .filter(([, times]) => times.length > 1)
    .map(([id, times]) => {
      const who = times.map(({ by }) => by).join(' and ')
      return {
        rule: 'not fenced',
        id,
        text: `${who} both got the confirmation that they finished it`,
      }
    })
}

/** Returns the ends of one message beyond the first: successful runs and copies in queues. */
function surplusOf({ successes, effects, places }: World, id: string): number {
  const runs = Math.max(successes.get(id) ?? 0, effects.has(id) ? 1 : 0)
  return Math.max(0, runs + (places.get(id)?.length ?? 0) - 1)
}

/** Returns messages that ended more than once, with the number of surplus ends. */
export function duplicatesIn(
  evidence: Evidence,
): readonly (readonly [id: string, surplus: number])[] {
  const world = index(evidence)
  return [...world.seen]
    .map((id) => [id, surplusOf(world, id)] as const)
    .filter(([, surplus]) => surplus > 0)
}

/**
 * Returns the number of duplicates that the faults explain. A message in flight when a process or
 * connection ended may be finished without the broker's knowledge. A copy without a known
 * confirmation is made again, and so is one whose original came back with its connection: hand-offs hold no slot of the
 * messages in flight.
 */
function boundOf({ entries, bound: known }: World): number {
  if (known !== undefined) return known
  const inFlight = new Map<string, number>()
  const disconnected = new Set(
    entries.flatMap((one) =>
      one.what === 'event' && one.type === 'connection_lost' ? [one.by] : [],
    ),
  )
  let bound = 0
  for (const entry of entries) {
    if (entry.what === 'spawned') inFlight.set(entry.process, entry.inFlight)
    if (entry.what === 'exited' && entry.isCrash) bound += entry.inFlight
    if (entry.what === 'fault') bound += entry.interrupted
    if (entry.what !== 'event') continue
    if (entry.type === 'connection_lost') bound += inFlight.get(entry.by) ?? 0
    if (entry.type === 'unknown') bound += 1
    const isCopied = entry.type === 'lost' && HAND_OFFS.has(entry.note ?? '')
    if (isCopied && disconnected.has(entry.by)) bound += 1
  }
  return bound
}

/** Decisions that make a copy of the message. */
const HAND_OFFS: ReadonlySet<string> = new Set(['retryAt', 'deadLetter', 'quarantine'])

function checkBound(world: World): readonly Violation[] {
  const duplicates = duplicatesIn(world)
  const total = sum(duplicates.map(([, surplus]) => surplus))
  const bound = boundOf(world)
  if (total <= bound) return []
  return duplicates.map(([id, surplus]) => ({
    rule: 'duplicates over the bound',
    id,
    text: `${surplus} too many; ${total} in total, ${bound} explained`,
  }))
}

function recoveryOf({ entries }: World): number | undefined {
  const healed = entries.findLast(({ what }) => what === 'healed')
  const drained = entries.findLast(({ what }) => what === 'drained')
  if (healed === undefined || drained === undefined) return undefined
  return Math.max(0, drained.at - healed.at) / 1_000
}

function checkRecovery(world: World): readonly Violation[] {
  const seconds = recoveryOf(world)
  if (seconds === undefined) {
    return [{ rule: 'not drained', text: `not within ${RECOVERY_BOUND_S} s after the fault` }]
  }
  if (seconds <= RECOVERY_BOUND_S) return []
  return [{ rule: 'slow recovery', text: `${seconds} s, at most ${RECOVERY_BOUND_S} s` }]
}

/** Checks that no broker behaviour ends a consumer process. */
function checkDeaths({ entries }: World): readonly Violation[] {
  return entries.flatMap((entry) =>
    entry.what === 'exited' && entry.isByItself === true
      ? [{ rule: 'ended with an error', text: `${entry.process} ended with an uncaught error` }]
      : [],
  )
}

function figuresOf(world: World, violations: readonly Violation[]): Figures {
  const { kinds, acknowledged, seen } = world
  const count = (rule: Rule) => violations.filter((one) => one.rule === rule).length
  return {
    attempted: kinds.size,
    acknowledged: acknowledged.size,
    ok: [...acknowledged].filter((id) => isWhereItBelongs(world, id)).length,
    lost: count('lost'),
    duplicated: sum(duplicatesIn(world).map(([, surplus]) => surplus)),
    recovered: [...seen].filter((id) => kinds.has(id) && !acknowledged.has(id)).length,
    unexpected: count('unexpected'),
    bound: boundOf(world),
    effectDuplicates: count('effect duplicated'),
    falseDeadLetters: count('false dead letter'),
    recoverySeconds: recoveryOf(world),
  }
}

function isWhereItBelongs(world: World, id: string): boolean {
  const kind = world.kinds.get(id)
  const ends = endsOf(world, id)
  return kind !== undefined && ends.length > 0 && ends.every((end) => end === END_OF[kind])
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0)
