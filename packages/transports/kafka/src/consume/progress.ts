/**
 * Tracks which records of a partition are finished: all below the mark, and above it those whose bit is set.
 * Handlers finish in any order. The mark is the offset to commit, and the bits are stored in the metadata of
 * the commit. After a crash, only unfinished records are delivered again.
 */
export class Progress {
  #mark: number
  /** The offset after the highest finished record; equal to the mark when none above it is finished. */
  #top: number
  #base: number
  #bits = new Uint32Array(FIRST_WORDS)
  /** Increases with every change, so that the committer knows which state it committed. */
  version = 0

  constructor(mark: number, finished: readonly Range[] = []) {
    this.#mark = mark
    this.#top = mark
    this.#base = mark
    for (const [from, to] of finished) this.finishAll(from, to)
  }

  /** Offset of the first unfinished record. */
  get mark(): number {
    return this.#mark
  }

  /** Number of offsets from the mark to the highest finished record. */
  get span(): number {
    return this.#top - this.#mark
  }

  /** Number of finished records above the mark. */
  get finishedAbove(): number {
    let count = 0
    for (let offset = this.#mark; offset < this.#top; offset++) if (this.has(offset)) count += 1
    return count
  }

  has(offset: number): boolean {
    if (offset < this.#mark) return true
    if (offset >= this.#top) return false
    const at = offset - this.#base
    return ((this.#bits[at >>> 5] as number) & (1 << (at & 31))) !== 0
  }

  finish(offset: number): void {
    if (offset === this.#mark) {
      this.#mark += 1
      if (this.#top > this.#mark) this.#advance()
      else this.#restart()
    } else if (offset > this.#mark) {
      const at = offset - this.#base
      if (at >>> 5 >= this.#bits.length) this.#makeRoom(offset)
      this.#set(offset - this.#base)
      if (offset >= this.#top) this.#top = offset + 1
    }
    this.version += 1
  }

  /** Marks `from` (included) to `to` (excluded) as finished: gaps in the log, or records finished by the previous owner. */
  finishAll(from: number, to: number): void {
    if (from <= this.#mark && to > this.#mark && this.#top <= to) {
      this.#mark = to
      this.#restart()
      this.version += 1
      return
    }
    for (let offset = Math.max(from, this.#mark); offset < to; offset++) this.finish(offset)
  }

  #set(at: number): void {
    const word = at >>> 5
    this.#bits[word] = (this.#bits[word] as number) | (1 << (at & 31))
  }

  /** Clears the bitmap when no record above the mark is finished. */
  #restart(): void {
    if (this.#top > this.#base) this.#bits.fill(0, 0, ((this.#top - this.#base) >>> 5) + 1)
    this.#base = this.#mark
    this.#top = this.#mark
  }

  /** Moves the mark past all finished records, a whole word at a time. */
  #advance(): void {
    let at = this.#mark - this.#base
    const end = this.#top - this.#base
    while (at < end) {
      const rest = ~((this.#bits[at >>> 5] as number) >>> (at & 31))
      const ones = Math.min(rest === 0 ? 32 : 31 - Math.clz32(rest & -rest), 32 - (at & 31))
      at += ones
      if ((at & 31) !== 0 || ones === 0) break
    }
    this.#mark = this.#base + Math.min(at, end)
    if (this.#mark === this.#top) this.#restart()
  }

  #makeRoom(offset: number): void {
    const finishedWords = (this.#mark - this.#base) >>> 5
    const used = ((this.#top - this.#base) >>> 5) + 1
    const words = ((offset - this.#base) >>> 5) + 1 - finishedWords
    const size = words > this.#bits.length / 2 ? this.#bits.length * 2 : this.#bits.length
    const bits = new Uint32Array(Math.max(size, 2 ** Math.ceil(Math.log2(words + 1))))
    bits.set(this.#bits.subarray(finishedWords, Math.min(used, this.#bits.length)))
    this.#bits = bits
    this.#base += finishedWords * 32
  }

  /** Returns a copy, to compute a future state without changing this one. */
  copy(): Progress {
    const copy = new Progress(this.#mark)
    copy.#base = this.#base
    copy.#top = this.#top
    copy.#bits = this.#bits.slice()
    return copy
  }

  /** Returns the text for the commit: lengths of alternating unfinished and finished runs, starting at the mark. */
  encode(): EncodedProgress {
    if (this.#top === this.#mark) return { text: '', upTo: this.#mark }
    const bytes: number[] = []
    let upTo = this.#mark
    for (let at = this.#mark; at < this.#top; ) {
      const open = this.#run(at, false)
      const done = this.#run(at + open, true)
      const size = bytes.length
      appendNumber(bytes, open)
      appendNumber(bytes, done)
      if (bytes.length > MAX_BYTES) {
        bytes.length = size
        break
      }
      at += open + done
      upTo = at
    }
    return { text: `${FORMAT}${Buffer.from(bytes).toString('base64url')}`, upTo }
  }

  #run(from: number, isFinished: boolean): number {
    let at = from
    while (at < this.#top && this.has(at) === isFinished) at += 1
    return at - from
  }
}

export interface EncodedProgress {
  readonly text: string
  /** The first offset that is not in the text, because it had no room for more. */
  readonly upTo: number
}

/** A range of offsets, from the first (included) to the second (excluded). */
export type Range = readonly [from: number, to: number]

/** 32 words for 1,024 records: more than most consumers have in flight. */
const FIRST_WORDS = 32
/** The version of the text format. */
const FORMAT = '1.'
/** 2,300 bytes are 3,067 characters. A broker accepts 4,096 by default, and the crash counts need some of them. */
const MAX_BYTES = 2_300
/** 16 million: far more than a consumer is ever ahead of its mark. Ten bytes of another client could encode 2^62. */
const MAX_SPAN = 16_777_216

/** Returns the finished ranges above the mark. Unreadable parts are ignored, because any client can commit to a group. */
export function decodeProgress(mark: number, text: string | null | undefined): readonly Range[] {
  if (!text?.startsWith(FORMAT)) return []
  const numbers = readNumbers(Buffer.from(text.slice(FORMAT.length), 'base64url'))
  const ranges: Range[] = []
  let at = mark
  for (let index = 0; index + 1 < numbers.length; index += 2) {
    const from = at + (numbers[index] as number)
    at = from + (numbers[index + 1] as number)
    if (at - mark > MAX_SPAN) break
    ranges.push([from, at])
  }
  return ranges
}

/** Appends a number with seven bits per byte, lowest first. The eighth bit means that another byte follows. */
function appendNumber(bytes: number[], value: number): void {
  let rest = value
  while (rest > 127) {
    bytes.push((rest % 128) | 128)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
}

function readNumbers(bytes: Uint8Array): readonly number[] {
  const numbers: number[] = []
  let value = 0
  let factor = 1
  for (const byte of bytes) {
    value += (byte & 127) * factor
    if (byte > 127) {
      factor *= 128
      continue
    }
    numbers.push(value)
    value = 0
    factor = 1
  }
  return numbers
}
