import { FAILURE_CLASSES } from '@redrive/core'
import type { StoreFilter } from '@redrive/runtime'
import { hashOfText } from './hashing.ts'
import type { SegmentId } from './layout.ts'
import { LIVE } from './rows.ts'
import type { Ref, Segment } from './segment.ts'

/** A position in the order of all dead letters; it stays valid after its entry is deleted. */
export interface Position {
  readonly savedAt: number
  readonly segment: SegmentId
  readonly offset: number
}

export const positionOf = ({ segment, row }: Ref): Position => ({
  savedAt: segment.rows.savedAt[row] ?? 0,
  segment: segment.id,
  offset: segment.rows.offset[row] ?? 0,
})

/** Compares by time; at the same time, by the order in which a process wrote them. */
function compare(one: Position, other: Position): number {
  if (one.savedAt !== other.savedAt) return one.savedAt - other.savedAt
  if (one.segment !== other.segment) return one.segment < other.segment ? -1 : 1
  return one.offset - other.offset
}

/**
 * Returns candidates for the filter, oldest first, after the position. Types and jobs are compared by
 * their hashes, so the caller must check the text again.
 */
export function* walk(
  segments: Iterable<Segment>,
  filter: StoreFilter,
  after: Position | undefined,
): Generator<Ref, void, undefined> {
  const waiting = [...segments]
    .filter((segment) => segment.live > 0)
    .sort((one, other) => one.oldest - other.oldest)
  const open: Track[] = []
  for (;;) {
    const first = smallest(open)
    const next = waiting[0]
    // A segment joins when its oldest entry may come before all others.
    if (next !== undefined && (first === undefined || next.oldest <= first.position.savedAt)) {
      waiting.shift()
      const track = new Track(next, filter, after)
      if (track.row >= 0) open.push(track)
    } else if (first === undefined) {
      return
    } else {
      yield { segment: first.segment, row: first.row }
      if (!first.advance()) open.splice(open.indexOf(first), 1)
    }
  }
}

function smallest(tracks: readonly Track[]): Track | undefined {
  let best = tracks[0]
  for (const track of tracks) {
    if (best !== undefined && compare(track.position, best.position) < 0) best = track
  }
  return best
}

/** Matches no row. -1 is a sink that the segment does not have: no row has that either. */
const ANY = -2

/** One segment in order of time, at a row that may match. */
class Track {
  readonly segment: Segment
  row = -1
  position: Position = { savedAt: 0, segment: '', offset: 0 }
  readonly #order: Uint32Array | undefined
  readonly #fits: (row: number) => boolean
  readonly #before: number
  #at: number

  constructor(segment: Segment, filter: StoreFilter, after: Position | undefined) {
    this.segment = segment
    this.#order = segment.order
    this.#fits = fitting(segment, filter)
    this.#before = filter.savedBefore ?? Number.POSITIVE_INFINITY
    this.#at = this.#start(filter.savedAfter ?? Number.NEGATIVE_INFINITY, after)
    this.advance()
  }

  advance(): boolean {
    const { savedAt, state, count } = this.segment.rows
    for (; this.#at < count; this.#at++) {
      const row = this.#rowAt(this.#at)
      if ((savedAt[row] ?? 0) >= this.#before) break
      if (state[row] !== LIVE || !this.#fits(row)) continue
      this.#at += 1
      this.row = row
      this.position = positionOf({ segment: this.segment, row })
      return true
    }
    this.row = -1
    return false
  }

  /** Returns the first row that is saved after that time and comes after the position. */
  #start(savedAfter: number, after: Position | undefined): number {
    const { segment } = this
    let low = 0
    let high = segment.rows.count
    while (low < high) {
      const middle = (low + high) >>> 1
      const there = positionOf({ segment, row: this.#rowAt(middle) })
      const isPast =
        there.savedAt > savedAfter && (after === undefined || compare(there, after) > 0)
      if (isPast) high = middle
      else low = middle + 1
    }
    return low
  }

  #rowAt(at: number): number {
    return this.#order?.[at] ?? at
  }
}

/** Returns a filter with few comparisons, because it runs for every skipped row. */
function fitting(segment: Segment, filter: StoreFilter): (row: number) => boolean {
  const { sink, class: classes, type, job } = segment.rows
  const ofSink = filter.sink === undefined ? ANY : segment.sinks.indexOf(filter.sink)
  const ofClass = filter.class === undefined ? ANY : FAILURE_CLASSES.indexOf(filter.class)
  const ofType = filter.type === undefined ? ANY : hashOfText(filter.type)
  const ofJob = filter.job === undefined ? ANY : hashOfText(filter.job)
  return (row) =>
    (ofSink === ANY || sink[row] === ofSink) &&
    (ofClass === ANY || classes[row] === ofClass) &&
    (ofType === ANY || type[row] === ofType) &&
    (ofJob === ANY || job[row] === ofJob)
}
