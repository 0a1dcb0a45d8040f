import { type Entry, EntryColumns } from './rows.ts'
import type { SegmentId } from './layout.ts'

/** Deletions that a segment records: start offsets of deleted lines, by segment. */
export type Deletions = Map<SegmentId, number[]>

export function addGone(gone: Deletions, segment: SegmentId, offsets: readonly number[]): void {
  const known = gone.get(segment)
  if (known === undefined) gone.set(segment, [...offsets])
  else for (const offset of offsets) known.push(offset)
}

/** One file: one process appends to it, all processes read it. */
export class Segment {
  readonly id: SegmentId
  rows: EntryColumns
  /** Names of the sinks; rows contain their index. */
  readonly sinks: string[]
  /** Recorded deletions, of this and of other segments. */
  readonly gone: Deletions
  /** Number of bytes that are in the rows. In our own segment: all acknowledged bytes. */
  scanned: number
  /** Its size at the last scan: the part after `scanned` is not a complete line. */
  seenSize: number
  /** True when no process will append to it any more. */
  isFinal = false
  /** True when this process appends to it: new lines did not come from others. */
  isOurs = false
  /** Deletions that were read before the lines they refer to. */
  readonly early: Set<number> = new Set()
  /** When we created or discovered the file, by the monotonic clock. */
  madeAt: number = performance.now()
  live = 0
  oldest: number = Number.POSITIVE_INFINITY
  newest: number = Number.NEGATIVE_INFINITY
  #isInOrder = true
  #order: Uint32Array | undefined

  constructor(
    id: SegmentId,
    known: Partial<Pick<Segment, 'rows' | 'sinks' | 'gone' | 'scanned' | 'seenSize'>> = {},
  ) {
    this.id = id
    this.rows = known.rows ?? new EntryColumns()
    this.sinks = known.sinks ?? []
    this.gone = known.gone ?? new Map()
    this.scanned = known.scanned ?? 0
    this.seenSize = known.seenSize ?? 0
    for (let row = 0; row < this.rows.count; row++) this.#sees(this.rows.savedAt[row] ?? 0)
  }

  add(entry: Omit<Entry, 'sink'>, sink: string): number {
    const row = this.rows.add({ ...entry, sink: this.#sinkNumber(sink) })
    this.#sees(entry.savedAt)
    return row
  }

  recordDeletions(segment: SegmentId, offsets: readonly number[]): void {
    addGone(this.gone, segment, offsets)
  }

  /** Returns the rows in order of time; undefined when that is the order of the file. */
  get order(): Uint32Array | undefined {
    if (this.#isInOrder) return undefined
    if (this.#order?.length !== this.rows.count) this.#order = this.#sorted()
    return this.#order
  }

  #sorted(): Uint32Array {
    const { savedAt, count } = this.rows
    const order = Uint32Array.from({ length: count }, (_, row) => row)
    return order.sort((one, other) => (savedAt[one] ?? 0) - (savedAt[other] ?? 0) || one - other)
  }

  #sees(savedAt: number): void {
    if (savedAt < this.newest) this.#isInOrder = false
    this.oldest = Math.min(this.oldest, savedAt)
    this.newest = Math.max(this.newest, savedAt)
  }

  #sinkNumber(name: string): number {
    const known = this.sinks.indexOf(name)
    return known >= 0 ? known : this.sinks.push(name) - 1
  }
}

/** The position of a dead letter. */
export interface Ref {
  readonly segment: Segment
  readonly row: number
}
