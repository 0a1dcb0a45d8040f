import type { IdHash } from './hashing.ts'

/** The data of a dead letter that is available without reading its line. */
export interface Entry {
  readonly hash: IdHash
  readonly savedAt: number
  /** Start of its line, and its length without the end of the line. */
  readonly offset: number
  readonly length: number
  readonly sink: number
  /** Hashes of the texts. */
  readonly type: number
  readonly job: number
  /** Position in FAILURE_CLASSES. */
  readonly class: number
}

export const LIVE = 0
/** Another line with the same id is later: two processes saved it without having seen each other's. */
export const SHADOWED = 1
export const DEAD = 2

/** Initial capacity: enough for a small file; a large one grows in a dozen steps. */
const FIRST_CAPACITY = 64
const WORDS = 4
/** Half as much again, so that at most a third of the memory is unused. */
const GROWTH = 1.5

interface Columns {
  readonly savedAt: Float64Array
  readonly hash: Uint32Array
  readonly offset: Uint32Array
  readonly length: Uint32Array
  readonly sink: Uint32Array
  readonly type: Uint32Array
  readonly job: Uint32Array
  readonly class: Uint8Array
}

/** Creates the columns in the order of an index file: those of 8 bytes first, so that all are aligned. */
function makeColumns(capacity: number, buffer: ArrayBuffer): Columns {
  let at = 0
  const take = (bytes: number) => (at += bytes) - bytes
  return {
    savedAt: new Float64Array(buffer, take(8 * capacity), capacity),
    hash: new Uint32Array(buffer, take(4 * WORDS * capacity), capacity * WORDS),
    offset: new Uint32Array(buffer, take(4 * capacity), capacity),
    length: new Uint32Array(buffer, take(4 * capacity), capacity),
    sink: new Uint32Array(buffer, take(4 * capacity), capacity),
    type: new Uint32Array(buffer, take(4 * capacity), capacity),
    job: new Uint32Array(buffer, take(4 * capacity), capacity),
    class: new Uint8Array(buffer, take(capacity), capacity),
  }
}

/** 45 bytes, and one for the state: the memory of a dead letter without its slot in the table. */
export const ROW_BYTES: number = 8 + 4 * WORDS + 5 * 4 + 1

/** The rows of a segment, one per dead letter, in the order of the file. */
export class EntryColumns {
  count: number
  #columns: Columns
  state: Uint8Array

  constructor(count = 0, columns: Columns = blank(FIRST_CAPACITY)) {
    this.count = count
    this.#columns = columns
    this.state = new Uint8Array(columns.class.length)
  }

  get savedAt(): Float64Array {
    return this.#columns.savedAt
  }
  get offset(): Uint32Array {
    return this.#columns.offset
  }
  get length(): Uint32Array {
    return this.#columns.length
  }
  get sink(): Uint32Array {
    return this.#columns.sink
  }
  get type(): Uint32Array {
    return this.#columns.type
  }
  get job(): Uint32Array {
    return this.#columns.job
  }
  get class(): Uint8Array {
    return this.#columns.class
  }

  add(entry: Entry): number {
    const row = this.count
    if (row === this.state.length) this.#resize(Math.max(FIRST_CAPACITY, Math.ceil(row * GROWTH)))
    const columns = this.#columns
    columns.savedAt[row] = entry.savedAt
    columns.hash.set(entry.hash, row * WORDS)
    columns.offset[row] = entry.offset
    columns.length[row] = entry.length
    columns.sink[row] = entry.sink
    columns.type[row] = entry.type
    columns.job[row] = entry.job
    columns.class[row] = entry.class
    this.count += 1
    return row
  }

  hashAt(row: number): IdHash {
    const { hash } = this.#columns
    const at = row * WORDS
    return [hash[at] ?? 0, hash[at + 1] ?? 0, hash[at + 2] ?? 0, hash[at + 3] ?? 0]
  }

  firstWord(row: number): number {
    return this.#columns.hash[row * WORDS] ?? 0
  }

  isOf(row: number, words: IdHash): boolean {
    const { hash } = this.#columns
    const at = row * WORDS
    return (
      hash[at] === words[0] &&
      hash[at + 1] === words[1] &&
      hash[at + 2] === words[2] &&
      hash[at + 3] === words[3]
    )
  }

  /** Returns the row whose line starts there; -1 when there is none. */
  rowAt(offset: number): number {
    const { offset: offsets } = this.#columns
    let low = 0
    let high = this.count - 1
    while (low <= high) {
      const middle = (low + high) >>> 1
      const there = offsets[middle] ?? 0
      if (there === offset) return middle
      if (there < offset) low = middle + 1
      else high = middle - 1
    }
    return -1
  }

  /** Releases unused capacity, because nothing more is added. */
  trim(): void {
    if (this.state.length > this.count) this.#resize(this.count)
  }

  /** Returns the columns as one buffer, for an index file. */
  toBuffer(): Buffer {
    const bytes = new ArrayBuffer(this.count * ROW_BYTES)
    copy(this.#columns, makeColumns(this.count, bytes), this.count)
    return Buffer.from(bytes)
  }

  static fromBuffer(count: number, buffer: ArrayBuffer): EntryColumns {
    return new EntryColumns(count, makeColumns(count, buffer))
  }

  #resize(capacity: number): void {
    const columns = blank(capacity)
    const state = new Uint8Array(capacity)
    copy(this.#columns, columns, this.count)
    state.set(this.state.subarray(0, this.count))
    this.#columns = columns
    this.state = state
  }
}

function blank(capacity: number): Columns {
  return makeColumns(capacity, new ArrayBuffer(capacity * ROW_BYTES))
}

function copy(from: Columns, to: Columns, count: number): void {
  to.savedAt.set(from.savedAt.subarray(0, count))
  to.hash.set(from.hash.subarray(0, count * WORDS))
  to.offset.set(from.offset.subarray(0, count))
  to.length.set(from.length.subarray(0, count))
  to.sink.set(from.sink.subarray(0, count))
  to.type.set(from.type.subarray(0, count))
  to.job.set(from.job.subarray(0, count))
  to.class.set(from.class.subarray(0, count))
}
