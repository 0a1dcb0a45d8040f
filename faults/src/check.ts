import type { Entry } from './history.ts'
import { END_OF, type End, type Kind } from './message.ts'

/** Where the broker held a message when everything was over. */
export type Place = 'source' | 'delay' | 'dlq' | 'quarantine'

export interface Found {
  readonly id: string
  readonly queue: string
  readonly place: Place
  /** Why it was given up, as its own headers say. */
  readonly reason: string | undefined
  /** The bytes are those the producer sent. */
  readonly isWhole: boolean
}

/** What happened, what the broker holds and what took effect: all that the checker knows. */
export interface Evidence {
  readonly entries: readonly Entry[]
  readonly found: readonly Found[]
  /** How often each message took effect, as the database says. */
  readonly effects: ReadonlyMap<string, number>
}

export interface Violation {
  readonly rule: Rule
  readonly id?: string
  readonly text: string
}

export type Rule =
  | 'lost'
  | 'unexpected'
  | 'duplicates over the bound'
  | 'effect duplicated'
  | 'false dead letter'
  | 'in the wrong place'
  | 'changed'
  | 'not drained'
  | 'slow recovery'
  | 'scenario'

export interface Figures {
  readonly attempted: number
  readonly acknowledged: number
  readonly ok: number
  readonly lost: number
  readonly duplicated: number
  readonly recovered: number
  readonly unexpected: number
  readonly bound: number
  readonly effectDuplicates: number
  readonly falseDeadLetters: number
  readonly recoverySeconds: number | undefined
}

export interface Verdict {
  readonly figures: Figures
  readonly violations: readonly Violation[]
}

/** A minute after the fault is over, nothing may be waiting any more. */
export const RECOVERY_BOUND_S = 60

/** Holds the evidence against the promises. It shares no code with what it checks. */
export function check(evidence: Evidence): Verdict {
  const world = index(evidence)
  const violations = [
    ...checkEach(world),
    ...checkUnexpected(world),
    ...checkBound(world),
    ...checkRecovery(world),
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
function endsOf({ effects, successes, places }: World, id: string): readonly (End | 'source')[] {
  // A consumer killed after the commit could not write down that it had succeeded.
  const hasEffect = effects.has(id) || successes.has(id)
  const queues = (places.get(id) ?? []).map(({ place }) => place)
  return [...(hasEffect ? (['effect'] as const) : []), ...queues]
}

function checkEach(world: World): readonly Violation[] {
  const found: Violation[] = []
  for (const [id, kind] of world.kinds) {
    const ends = endsOf(world, id)
    const expected = END_OF[kind]
    if (world.acknowledged.has(id) && ends.length === 0) {
      found.push({ rule: 'lost', id, text: `${kind}, acknowledged and nowhere to be found` })
    }
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

function misplaced(kind: Kind, expected: End, end: End | 'source'): Violation {
  if (end === 'source' || end === 'delay') {
    return { rule: 'not drained', text: `${kind}, still in the ${end} queue` }
  }
  const isGivenUp = end === 'dlq' || end === 'quarantine'
  return isGivenUp && expected === 'effect'
    ? { rule: 'false dead letter', text: `${kind}, given up into ${end}` }
    : { rule: 'in the wrong place', text: `${kind}, in ${end} instead of ${expected}` }
}

function checkUnexpected({ seen, kinds }: World): readonly Violation[] {
  return [...seen]
    .filter((id) => !kinds.has(id))
    .map((id) => ({ rule: 'unexpected', id, text: 'seen, but never sent' }))
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
function boundOf({ entries }: World): number {
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
