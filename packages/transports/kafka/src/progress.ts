/**
 * Which records of a partition are finished: all below the mark, and above it those whose bit is set.
 * Handlers finish in any order, so the mark is what may be committed, and the bits travel with it as
 * the commit's metadata: after a crash only what was really unfinished is handed out again.
 */
export class Progress {
  #mark: number
  /** One behind the highest finished record; the mark when there is none above it. */
  #top: number
  #base: number
  #bits = new Uint32Array(FIRST_WORDS)
  /** Rises with every change: whoever commits remembers which state that was. */
  version = 0

  constructor(mark: number, finished: readonly Range[] = []) {
    this.#mark = mark
    this.#top = mark
    this.#base = mark
    for (const [from, to] of finished) this.finishAll(from, to)
  }

  /** The first record that is not finished. */
  get mark(): number {
    return this.#mark
  }

  /** From the mark to the highest finished record. */
  get span(): number {
    return this.#top - this.#mark
  }

  /** How many are finished above the mark. */
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

  /** From the first up to, not including, the second: what is no record, or was finished by someone before us. */
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

  /** Nothing above the mark: the bitmap begins anew. */
  #restart(): void {
    if (this.#top > this.#base) this.#bits.fill(0, 0, ((this.#top - this.#base) >>> 5) + 1)
    this.#base = this.#mark
    this.#top = this.#mark
  }

  /** Over all that is finished, whole words at a time. */
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
    const dead = (this.#mark - this.#base) >>> 5
    const used = ((this.#top - this.#base) >>> 5) + 1
    const words = ((offset - this.#base) >>> 5) + 1 - dead
    const size = words > this.#bits.length / 2 ? this.#bits.length * 2 : this.#bits.length
    const bits = new Uint32Array(Math.max(size, 2 ** Math.ceil(Math.log2(words + 1))))
    bits.set(this.#bits.subarray(dead, Math.min(used, this.#bits.length)))
    this.#bits = bits
    this.#base += dead * 32
  }

  /** The same state, to look at what would be. */
  copy(): Progress {
    const copy = new Progress(this.#mark)
    copy.#base = this.#base
    copy.#top = this.#top
    copy.#bits = this.#bits.slice()
    return copy
  }

  /** As text for the commit: lengths of runs, unfinished and finished in turn, from the mark on. */
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
      if (bytes.length > MOST_BYTES) {
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
  /** What is finished from here on is not in the text: there was no room for it. */
  readonly upTo: number
}

/** From the first up to, not including, the second. */
export type Range = readonly [from: number, to: number]

/** 1,024 records at once: more than most consumers have in hand. */
const FIRST_WORDS = 32
/** `1.`: how the rest is to be read. */
const FORMAT = '1.'
/** 2,300 bytes are 3,067 letters: a broker takes 4,096 unless it was told otherwise, and deaths need some. */
const MOST_BYTES = 2_300
/** 16 million: far more than a consumer is ever ahead of its mark. Ten bytes of a stranger could say 2^62. */
const MOST_SPAN = 16_777_216

/** What was finished above the mark, as far as the text can be read: anyone may commit to a group. */
export function decodeProgress(mark: number, text: string | null | undefined): readonly Range[] {
  if (!text?.startsWith(FORMAT)) return []
  const numbers = readNumbers(Buffer.from(text.slice(FORMAT.length), 'base64url'))
  const ranges: Range[] = []
  let at = mark
  for (let index = 0; index + 1 < numbers.length; index += 2) {
    const from = at + (numbers[index] as number)
    at = from + (numbers[index + 1] as number)
    if (at - mark > MOST_SPAN) break
    ranges.push([from, at])
  }
  return ranges
}

/** Seven bits a byte, lowest first; the eighth says that there is more. */
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
