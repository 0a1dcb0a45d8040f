import type { Violation } from './evidence.ts'
import type { Entry } from './history.ts'
import { END_OF, type Kind, type PlannedMessage } from './message.ts'

/** Puts a key into the id of a message, so that `keyIn` can read it there. */
export function withKey<M extends PlannedMessage>(message: M, number: number): M & { key: string } {
  const key = `key-${number}`
  return { ...message, id: message.id.replace('/', `/${key}/`), key }
}

export const keyIn = (id: string): string => /\/(key-\d+)\//.exec(id)?.[1] ?? ''

/** One key: its messages in the order of the log, and which process runs which of them. */
interface Lane {
  /** The partition it is in. */
  readonly place: string | undefined
  readonly order: Map<string, number>
  readonly done: Set<string>
  /** All messages before this index are done. */
  doneUpTo: number
  /** The running message of each process, and the last message that it started. */
  readonly running: Map<string, string>
  readonly last: Map<string, number>
  /**
   * Processes that have ended or were removed from the group. They do not prevent others from
   * starting.
   */
  readonly gone: Set<string>
}

type Assigned = Extract<Entry, { readonly what: 'assigned' }>

/**
 * Checks the order within a key. No message starts before all earlier ones have ended, and no two
 * run concurrently. After a crash some may run again, in order. All consumers are in one group.
 */
export function checkKeys(
  entries: readonly Entry[],
  keyOf: (id: string) => string,
): readonly Violation[] {
  const kinds = new Map<string, Kind>()
  const lanes = lanesOf(entries, keyOf)
  const thrownOut = thrownOutIn(entries)
  const current = new Map<string, Assigned>()
  const violations: Violation[] = []
  for (const entry of entries) {
    if (entry.what === 'attempted') kinds.set(entry.id, entry.kind)
    // Its runs have ended. Unfinished messages run again in another process.
    if (entry.what === 'killed' || entry.what === 'exited') {
      for (const lane of lanes.values()) forget(lane, entry.process)
    }
    if (entry.what === 'assigned') {
      const isOut = (given: Assigned) => thrownOut.has(given) && given.generation < entry.generation
      const out = [...current.values()].filter(isOut).map(({ by }) => by)
      for (const lane of lanes.values()) assign(lane, entry, out)
      current.set(entry.by, entry)
    }
    if (!('id' in entry) || entry.id === undefined) continue
    const lane = lanes.get(keyOf(entry.id))
    if (lane === undefined) continue
    const { id, by } = entry
    if (entry.what === 'handler_started') violations.push(...begin(lane, id, by))
    if (entry.what === 'effect' || entry.what === 'failed') lane.running.delete(by)
    if (entry.what === 'effect' || (entry.what === 'failed' && isGivenUp(kinds.get(id)))) {
      lane.done.add(id)
    }
  }
  return violations
}

const isGivenUp = (kind: Kind | undefined) => kind !== undefined && END_OF[kind] === 'dlq'

/**
 * Returns messages in the log, in the order in which they were sent: acknowledged, or seen by a
 * consumer.
 */
function storedOf(entries: readonly Entry[]): readonly string[] {
  const stored = new Set<string>()
  for (const entry of entries) {
    if (entry.what === 'acknowledged' || entry.what === 'delivered') stored.add(entry.id)
  }
  return entries.flatMap((entry) =>
    entry.what === 'attempted' && stored.has(entry.id) ? [entry.id] : [],
  )
}

function lanesOf(
  entries: readonly Entry[],
  keyOf: (id: string) => string,
): ReadonlyMap<string, Lane> {
  const places = new Map<string, string>()
  for (const entry of entries) {
    if (entry.what !== 'delivered') continue
    places.set(keyOf(entry.id), entry.position.slice(0, entry.position.lastIndexOf('/')))
  }
  const lanes = new Map<string, Lane>()
  for (const id of storedOf(entries)) {
    const key = keyOf(id)
    const lane = lanes.get(key) ?? newLane(places.get(key))
    lane.order.set(id, lane.order.size)
    lanes.set(key, lane)
  }
  return lanes
}

const newLane = (place: string | undefined): Lane => ({
  place,
  order: new Map(),
  done: new Set(),
  doneUpTo: 0,
  running: new Map(),
  last: new Map(),
  gone: new Set(),
})

/**
 * Returns the last assignment of each process before its group removed it. The process rejoined as
 * another member, or was killed before. A process stopped past its session cannot notice the
 * removal.
 */
function thrownOutIn(entries: readonly Entry[]): ReadonlySet<Assigned> {
  const last = new Map<string, Assigned>()
  const found = new Set<Assigned>()
  for (const entry of entries) {
    if (entry.what !== 'assigned' && entry.what !== 'killed') continue
    const isKill = entry.what === 'killed'
    const before = last.get(isKill ? entry.process : entry.by)
    if (before !== undefined && (isKill || before.member !== entry.member)) found.add(before)
    if (!isKill) last.set(entry.by, entry)
  }
  return found
}

/** A removed process does not own the partition any more when another process has it. */
function assign(lane: Lane, { by, places }: Assigned, out: readonly string[]): void {
  lane.last.delete(by)
  lane.gone.delete(by)
  if (lane.place === undefined || !places.includes(lane.place)) return
  for (const process of out) if (process !== by) forget(lane, process)
}

function forget(lane: Lane, process: string): void {
  lane.running.delete(process)
  lane.last.delete(process)
  lane.gone.add(process)
}

function begin(lane: Lane, id: string, by: string): readonly Violation[] {
  const violations: Violation[] = []
  const add = (text: string) => violations.push({ rule: 'out of order', id, text })
  const number = lane.order.get(id) ?? 0
  const missing = firstUndone(lane)
  if (missing !== undefined && (lane.order.get(missing) ?? 0) < number) {
    add(`started before ${missing} finished`)
  }
  if (!lane.gone.has(by)) {
    for (const [process, other] of lane.running) add(`ran concurrently with ${other} in ${process}`)
    lane.running.set(by, id)
  }
  const last = lane.last.get(by) ?? -1
  if (number < last) add(`${by} started it again after a later one`)
  lane.last.set(by, number)
  return violations
}

function firstUndone(lane: Lane): string | undefined {
  const ids = idsOf(lane)
  while (lane.doneUpTo < ids.length && lane.done.has(ids[lane.doneUpTo] as string)) {
    lane.doneUpTo += 1
  }
  return ids[lane.doneUpTo]
}

const known = new WeakMap<Lane, readonly string[]>()

/** Returns the ids; all are known before the first starts. */
function idsOf(lane: Lane): readonly string[] {
  const ids = known.get(lane) ?? [...lane.order.keys()]
  known.set(lane, ids)
  return ids
}
