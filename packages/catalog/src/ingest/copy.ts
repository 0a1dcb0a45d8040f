import type { Copy } from '../database.ts'

/** 8 MiB in a statement: what both sides hold in memory at once. */
const STATEMENT_BYTES = 8_388_608
/** 64 KiB to begin with: a batch of some tens. It grows. */
const FIRST_BYTES = 65_536

/** Begins a stream of the binary format: a signature, no flags, no extension. */
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
/** Ends it, where the number of columns would be. */
const TRAILER = -1
const NULL = -1
const JSONB_VERSION = 1
/** PostgreSQL counts from there, in microseconds. */
const EPOCH_MS = Date.UTC(2000, 0)
const UINT32 = 2 ** 32
/** Bytes that a character of JavaScript may need. */
const UTF8_MAX = 3

/** Writes rows in the binary format of COPY: nothing is escaped here and nothing parsed there. */
export class CopyWriter {
  #buffer = Buffer.allocUnsafe(FIRST_BYTES)
  #at = 0

  constructor() {
    this.#at = SIGNATURE.copy(this.#buffer)
  }

  get size(): number {
    return this.#at
  }

  row(columns: number): void {
    this.#room(2)
    this.#at = this.#buffer.writeInt16BE(columns, this.#at)
  }

  uuid(value: string): void {
    this.#room(20)
    this.#at = this.#buffer.writeInt32BE(16, this.#at)
    this.#at += this.#buffer.write(value.replaceAll('-', ''), this.#at, 'hex')
  }

  integer(value: number): void {
    this.#room(8)
    this.#at = this.#buffer.writeInt32BE(4, this.#at)
    this.#at = this.#buffer.writeInt32BE(value, this.#at)
  }

  boolean(value: boolean): void {
    this.#room(5)
    this.#at = this.#buffer.writeInt32BE(1, this.#at)
    this.#at = this.#buffer.writeUInt8(value ? 1 : 0, this.#at)
  }

  /** Epoch ms. */
  moment(value: number): void {
    const micros = (value - EPOCH_MS) * 1_000
    const high = Math.floor(micros / UINT32)
    this.#room(12)
    this.#at = this.#buffer.writeInt32BE(8, this.#at)
    this.#at = this.#buffer.writeInt32BE(high, this.#at)
    this.#at = this.#buffer.writeUInt32BE(micros - high * UINT32, this.#at)
  }

  text(value: string | null): void {
    if (value === null) return this.#null()
    this.#room(4 + value.length * UTF8_MAX)
    const size = this.#buffer.write(value, this.#at + 4)
    this.#buffer.writeInt32BE(size, this.#at)
    this.#at += 4 + size
  }

  json(value: string | null): void {
    if (value === null) return this.#null()
    this.#room(5 + value.length * UTF8_MAX)
    this.#buffer[this.#at + 4] = JSONB_VERSION
    const size = this.#buffer.write(value, this.#at + 5) + 1
    this.#buffer.writeInt32BE(size, this.#at)
    this.#at += 4 + size
  }

  bytes(value: Uint8Array | null): void {
    if (value === null) return this.#null()
    this.#room(4 + value.length)
    this.#at = this.#buffer.writeInt32BE(value.length, this.#at)
    this.#buffer.set(value, this.#at)
    this.#at += value.length
  }

  finished(): Buffer {
    this.row(TRAILER)
    return this.#buffer.subarray(0, this.#at)
  }

  #null(): void {
    this.#room(4)
    this.#at = this.#buffer.writeInt32BE(NULL, this.#at)
  }

  #room(size: number): void {
    const needed = this.#at + size
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2))
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
  }
}

/** Adds a row for each, in as many statements as memory asks for. */
export async function copyRows<T>(
  copy: Copy,
  target: string,
  items: Iterable<T>,
  write: (writer: CopyWriter, item: T) => void,
): Promise<void> {
  let writer: CopyWriter | undefined
  for (const item of items) {
    writer ??= new CopyWriter()
    write(writer, item)
    if (writer.size < STATEMENT_BYTES) continue
    await copy(target, writer.finished())
    writer = undefined
  }
  if (writer !== undefined) await copy(target, writer.finished())
}
