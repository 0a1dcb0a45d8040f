/**
 * Reads the consumers' group requests byte by byte, as the protocol documents them. It shares no
 * code with the client library or the transport, so their mistakes stay visible.
 */
class Bytes {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  int16(): number {
    this.#at += 2
    return this.#bytes.readInt16BE(this.#at - 2)
  }

  int32(): number {
    this.#at += 4
    return this.#bytes.readInt32BE(this.#at - 4)
  }

  int64(): number {
    this.#at += 8
    return Number(this.#bytes.readBigInt64BE(this.#at - 8))
  }

  varint(): number {
    let value = 0
    let factor = 1
    for (;;) {
      const byte = this.#bytes.readUInt8(this.#at)
      this.#at += 1
      value += (byte & 127) * factor
      if (byte < 128) return value
      factor *= 128
    }
  }

  /** Reads a string with its length plus one as a varint; 0 means none. */
  compactString(): string | undefined {
    return this.#text(this.varint() - 1)
  }

  string(): string | undefined {
    return this.#text(this.int16())
  }

  #text(length: number): string | undefined {
    if (length < 0) return undefined
    this.#at += length
    return this.#bytes.toString('utf8', this.#at - length, this.#at)
  }

  /** Checks that there are no tagged fields; no known version sends any. */
  noTags(): void {
    if (this.varint() !== 0) throw new Error('unexpected tagged fields')
  }
}

const times = <T>(count: number, read: () => T): readonly T[] => Array.from({ length: count }, read)

export interface CommitRequest {
  readonly group: string
  readonly member: string
  readonly generation: number
  /** `topic/partition`. */
  readonly places: readonly string[]
}

/** Reads an OffsetCommit request, version 9. */
export function readCommit(bytes: Buffer): CommitRequest {
  const from = new Bytes(bytes)
  const group = from.compactString() ?? ''
  const generation = from.int32()
  const member = from.compactString() ?? ''
  from.compactString()
  const places = times(from.varint() - 1, () => {
    const topic = from.compactString()
    const partitions = times(from.varint() - 1, () => {
      const partition = from.int32()
      from.int64()
      from.int32()
      from.compactString()
      from.noTags()
      return `${topic}/${partition}`
    })
    from.noTags()
    return partitions
  })
  return { group, member, generation, places: places.flat() }
}

/** Reads a SyncGroup request, version 5: the member and the generation of the group. */
export function readSync(bytes: Buffer): Omit<CommitRequest, 'places'> {
  const from = new Bytes(bytes)
  const group = from.compactString() ?? ''
  const generation = from.int32()
  return { group, generation, member: from.compactString() ?? '' }
}

/** Reads the assignment that the group leader gives a member. */
export function readAssignment(bytes: Buffer): readonly string[] {
  if (bytes.length === 0) return []
  const from = new Bytes(bytes)
  from.int16()
  return times(from.int32(), () => {
    const topic = from.string()
    return times(from.int32(), () => `${topic}/${from.int32()}`)
  }).flat()
}

/** A commit as the broker stores it. */
export interface StoredCommit {
  readonly group: string
  readonly place: string
  readonly mark: number
  readonly metadata: string
  /** When the broker stored it. */
  readonly at: number
}

/** Reads a record of `__consumer_offsets`; undefined when it is not a commit. */
export function readStored(key: Buffer | null, value: Buffer | null): StoredCommit | undefined {
  if (key === null || value === null) return undefined
  const from = new Bytes(key)
  if (from.int16() > 1) return undefined
  const group = from.string() ?? ''
  const place = `${from.string()}/${from.int32()}`
  const stored = new Bytes(value)
  const version = stored.int16()
  const mark = stored.int64()
  if (version >= 3) stored.int32()
  const metadata = (version >= 4 ? stored.compactString() : stored.string()) ?? ''
  return { group, place, mark, metadata, at: stored.int64() }
}

/** Offsets from the first up to the second, which is not included. */
export type Range = readonly [from: number, to: number]

/**
 * Returns the finished ranges above the committed offset. The metadata contains run lengths,
 * alternating between unfinished and finished.
 */
export function finishedAbove({ mark, metadata }: StoredCommit): readonly Range[] {
  const text = /^1\.([\w-]*)/.exec(metadata)?.[1]
  if (text === undefined) return []
  const bytes = Buffer.from(text, 'base64url')
  const from = new Bytes(Buffer.concat([bytes, END]))
  const ranges: Range[] = []
  for (let at = mark; ; ) {
    const open = from.varint()
    const done = from.varint()
    if (done === 0) return ranges
    ranges.push([at + open, at + open + done])
    at += open + done
  }
}

/** Two empty runs: no commit contains them. */
const END = Buffer.from([0, 0])
