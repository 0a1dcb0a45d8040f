import { FAILURE_CLASSES, type FailureClass } from '@redrive/core'
import type { StoreStats } from '@redrive/runtime'
import type { IdHash } from './hashing.ts'
import { IdTable } from './id-table.ts'
import type { SegmentId } from './layout.ts'
import { DEAD, type Entry, LIVE, SHADOWED } from './rows.ts'
import type { Ref, Segment } from './segment.ts'

/**
 * All dead letters, in memory. Saving an existing id records which line it replaces, so each id has one
 * live line. Two processes may save the same id without having seen each other's line. Then both lines
 * stay: the later one is live and the other is shadowed, so that a delete removes both.
 */
export class Entries {
  readonly segments: Map<SegmentId, Segment> = new Map()
  readonly #table = new IdTable()
  readonly #byClass: number[] = FAILURE_CLASSES.map(() => 0)
  readonly #bySink = new Map<string, number>()
  #count = 0
  #bytes = 0
  #shadowed = 0

  get bytes(): number {
    return this.#bytes
  }

  /** Adds a segment with all its rows. */
  attach(segment: Segment): void {
    this.segments.set(segment.id, segment)
    this.#table.attach(segment)
    for (let row = 0; row < segment.rows.count; row++) this.#place({ segment, row })
  }

  add(segment: Segment, entry: Omit<Entry, 'sink'>, sink: string): void {
    this.#place({ segment, row: segment.add(entry, sink) })
  }

  /** Returns the live entry with that id. */
  find(hash: IdHash): Ref | undefined {
    let found: Ref | undefined
    this.#table.visit(hash, (ref) => {
      if (stateOf(ref) === LIVE) found = ref
    })
    return found
  }

  /** Returns all lines with that id that are not deleted: more than one only after such a double save. */
  all(hash: IdHash): readonly Ref[] {
    const found: Ref[] = []
    this.#table.visit(hash, (ref) => void found.push(ref))
    return found
  }

  /** Marks a line as deleted. Returns whether it was live. */
  kill({ segment, row }: Ref): boolean {
    const { rows } = segment
    const state = rows.state[row]
    if (state === DEAD) return false
    rows.state[row] = DEAD
    if (state === SHADOWED) {
      this.#shadowed -= 1
      return false
    }
    this.#counted({ segment, row }, -1)
    if (this.#shadowed > 0) this.#promote(rows.hashAt(row))
    return true
  }

  /** Applies a deletion that a segment records. Returns false when the segment is unknown. */
  killAt(id: SegmentId, offset: number): boolean {
    const segment = this.segments.get(id)
    if (segment === undefined) return false
    const row = segment.rows.rowAt(offset)
    if (row >= 0) this.kill({ segment, row })
    else if (offset >= segment.scanned) segment.early.add(offset)
    return true
  }

  /** Removes a segment whose file is gone, with all its lines. */
  drop(segment: Segment): void {
    for (let row = 0; row < segment.rows.count; row++) this.kill({ segment, row })
    this.segments.delete(segment.id)
    this.#table.detach(segment)
  }

  stats(oldestSavedAt: number | undefined): StoreStats {
    const byClass: Partial<Record<FailureClass, number>> = {}
    for (const [position, name] of FAILURE_CLASSES.entries()) {
      const count = this.#byClass[position] ?? 0
      if (count > 0) byClass[name] = count
    }
    const bySink = Object.fromEntries(this.#bySink)
    return { count: this.#count, bytes: this.#bytes, oldestSavedAt, byClass, bySink }
  }

  #place(ref: Ref): void {
    const { segment, row } = ref
    if (segment.early.size > 0 && segment.early.delete(segment.rows.offset[row] ?? 0)) {
      segment.rows.state[row] = DEAD
      return
    }
    const rival = this.find(segment.rows.hashAt(row))
    this.#table.insert(ref)
    if (rival !== undefined && isLater(rival, ref)) {
      segment.rows.state[row] = SHADOWED
      this.#shadowed += 1
      return
    }
    if (rival !== undefined) this.#shadow(rival)
    this.#counted(ref, 1)
  }

  #shadow(ref: Ref): void {
    this.#counted(ref, -1)
    ref.segment.rows.state[ref.row] = SHADOWED
    this.#shadowed += 1
  }

  /** Makes the latest shadowed line live. */
  #promote(hash: IdHash): void {
    const [first, ...others] = this.all(hash)
    if (first === undefined) return
    const latest = others.reduce((best, ref) => (isLater(ref, best) ? ref : best), first)
    latest.segment.rows.state[latest.row] = LIVE
    this.#shadowed -= 1
    this.#counted(latest, 1)
  }

  #counted({ segment, row }: Ref, change: 1 | -1): void {
    const { rows, sinks } = segment
    segment.live += change
    this.#count += change
    this.#bytes += change * (rows.length[row] ?? 0)
    const position = rows.class[row] ?? 0
    this.#byClass[position] = (this.#byClass[position] ?? 0) + change
    const sink = sinks[rows.sink[row] ?? 0] ?? ''
    const left = (this.#bySink.get(sink) ?? 0) + change
    if (left === 0) this.#bySink.delete(sink)
    else this.#bySink.set(sink, left)
  }
}

const stateOf = ({ segment, row }: Ref) => segment.rows.state[row]

/** Compares by time; at the same time, by position. */
function isLater(one: Ref, other: Ref): boolean {
  const difference = savedAt(one) - savedAt(other)
  if (difference !== 0) return difference > 0
  if (one.segment !== other.segment) return one.segment.id > other.segment.id
  return one.row > other.row
}

const savedAt = ({ segment, row }: Ref) => segment.rows.savedAt[row] ?? 0
