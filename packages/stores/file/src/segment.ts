import { type Entry, Rows } from './rows.ts'
import type { SegmentId } from './layout.ts'

/** Deletions a segment tells of: where the lines begin that are gone, by the segment they are in. */
export type Gone = Map<SegmentId, number[]>

export function addGone(gone: Gone, segment: SegmentId, offsets: readonly number[]): void {
  const known = gone.get(segment)
  if (known === undefined) gone.set(segment, [...offsets])
  else for (const offset of offsets) known.push(offset)
}

/** One file: one process appends to it, all read it. */
export class Segment {
  readonly id: SegmentId
  rows: Rows
  /** Names of the sinks; rows have their positions. */
  readonly sinks: string[]
  /** What it says about dead letters, of its own and of other segments. */
  readonly gone: Gone
  /** So much of the file is in the rows. For the one we write, all that is acknowledged. */
  scanned: number
  /** Its size at the last look: what is beyond `scanned` then is no whole line. */
  seenSize: number
  /** Nobody will append to it any more. */
  isFinal = false
  /** We append to it: what is new in it did not come from others. */
  isOurs = false
  /** Deletions that came before the lines they are about. */
  readonly early: Set<number> = new Set()
  /** When we made the file or came to know it, by the monotonic clock. */
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
    this.rows = known.rows ?? new Rows()
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

  tells(segment: SegmentId, offsets: readonly number[]): void {
    addGone(this.gone, segment, offsets)
  }

  /** The rows in order of time; undefined when that is the order of the file. */
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

/** Where a dead letter is. */
export interface Ref {
  readonly segment: Segment
  readonly row: number
}
