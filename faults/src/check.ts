import type { Evidence, Figures, Found, Rule, Verdict, Violation } from './evidence.ts'
import { END_OF, type End, type Kind } from './message.ts'

/** A minute after the fault is over, nothing may be waiting any more. */
export const RECOVERY_BOUND_S = 60

/** Holds the evidence against the promises. It shares no code with what it checks. */
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
  /** Handlers that ran to success, by message. */
  readonly successes: ReadonlyMap<string, number>
  readonly places: ReadonlyMap<string, readonly Found[]>
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

/** Where a message is now: an effect, or in a queue; several when it is in several. */
function endsOf({ effects, places }: World, id: string): readonly (End | 'source')[] {
  const queues = (places.get(id) ?? []).map(({ place }) => place)
  // What a consumer wrote down is not an effect: one killed after its commit could not, and one that
  // believes a message to be handled already may be wrong.
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
      found.push({ rule: 'changed', id, text: 'its bytes are not those that were sent' })
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
    if (isNowhere) return lost('acknowledged and nowhere to be found')
    return committed?.has(id) === false ? lost('acknowledged, and its business fact is gone') : []
  }
  return isNowhere && committed?.has(id) === true
    ? lost('nowhere to be found, although its business fact is there')
    : []
}

function misplaced(kind: Kind, expected: End, end: End | 'source'): Violation {
  if (end === 'source' || end === 'delay') {
    return { rule: 'not drained', text: `${kind}, still in the ${end} queue` }
  }
  const isGivenUp = end === 'dlq' || end === 'quarantine'
  return isGivenUp && expected === 'effect'
    ? { rule: 'false dead letter', text: `${kind}, given up into ${end}` }
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

/** A lease has one owner at a time: whoever comes second is told that the message is not theirs any more. */
function checkFenced({ entries }: World): readonly Violation[] {
  const settled = entries.filter((entry) => entry.what === 'settled')
  return [...Map.groupBy(settled, ({ id }) => id)]
    .filter(([, times]) => times.length > 1)
    .map(([id, times]) => {
      const who = times.map(({ by }) => by).join(' and ')
      return { rule: 'not fenced', id, text: `${who} were told that they had finished it` }
    })
}

/** Ends of one message beyond the first: runs to success and copies in queues. */
function surplusOf({ successes, effects, places }: World, id: string): number {
  const runs = Math.max(successes.get(id) ?? 0, effects.has(id) ? 1 : 0)
  return Math.max(0, runs + (places.get(id)?.length ?? 0) - 1)
}

/** Messages that ended more than once, and how often too often. */
export function duplicatesIn(
  evidence: Evidence,
): readonly (readonly [id: string, surplus: number])[] {
  const world = index(evidence)
  return [...world.seen]
    .map((id) => [id, surplusOf(world, id)] as const)
    .filter(([, surplus]) => surplus > 0)
}

/**
 * How many duplicates the faults explain. Whatever was in hand when a process or a connection ended
 * may have been finished without the broker knowing; a copy whose proof is unknown is made again.
 */
function boundOf({ entries, bound: known }: World): number {
  if (known !== undefined) return known
  const inFlight = new Map<string, number>()
  let bound = 0
  for (const entry of entries) {
    if (entry.what === 'spawned') inFlight.set(entry.process, entry.inFlight)
    if (entry.what === 'exited' && entry.isCrash) bound += entry.inFlight
    if (entry.what === 'fault') bound += entry.interrupted
    if (entry.what !== 'event') continue
    if (entry.type === 'connection_lost') bound += inFlight.get(entry.by) ?? 0
    if (entry.type === 'unknown') bound += 1
  }
  return bound
}

function checkBound(world: World): readonly Violation[] {
  const duplicates = duplicatesIn(world)
  const total = sum(duplicates.map(([, surplus]) => surplus))
  const bound = boundOf(world)
  if (total <= bound) return []
  return duplicates.map(([id, surplus]) => ({
    rule: 'duplicates over the bound',
    id,
    text: `${surplus} too many; ${total} in all, ${bound} explained`,
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

/** Whatever a broker does, it must not end the process of whoever consumes. */
function checkDeaths({ entries }: World): readonly Violation[] {
  return entries.flatMap((entry) =>
    entry.what === 'exited' && entry.isByItself === true
      ? [{ rule: 'died by itself', text: `${entry.process} ended with an error nobody caught` }]
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
