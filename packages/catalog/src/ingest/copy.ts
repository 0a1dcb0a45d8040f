import type { Copy } from '../database.ts'

/** 8 MiB per statement: the client and the server hold this much in memory. */
const STATEMENT_BYTES = 8_388_608
/** 64 KiB as the first size: enough for some tens of dead letters. The buffer grows. */
const FIRST_BYTES = 65_536

/** The start of a stream in the binary format: a signature, no flags, no extension. */
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
/** The end of a stream, written in place of a number of columns. */
const TRAILER = -1
const NULL = -1
const JSONB_VERSION = 1
/** The start of PostgreSQL timestamps, which count microseconds. */
const EPOCH_MS = Date.UTC(2000, 0)
const UINT32 = 2 ** 32
/** Maximum number of UTF-8 bytes for one character of a JavaScript string. */
const UTF8_MAX = 3

/** A writer for the binary format of COPY. It avoids escaping here and parsing on the server. */
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
    this.#reserve(2)
    this.#at = this.#buffer.writeInt16BE(columns, this.#at)
  }

  uuid(value: string): void {
    this.#reserve(20)
    this.#at = this.#buffer.writeInt32BE(16, this.#at)
    this.#at += this.#buffer.write(value.replaceAll('-', ''), this.#at, 'hex')
  }

  integer(value: number): void {
    this.#reserve(8)
    this.#at = this.#buffer.writeInt32BE(4, this.#at)
    this.#at = this.#buffer.writeInt32BE(value, this.#at)
  }

  boolean(value: boolean): void {
    this.#reserve(5)
    this.#at = this.#buffer.writeInt32BE(1, this.#at)
    this.#at = this.#buffer.writeUInt8(value ? 1 : 0, this.#at)
  }

  /** Writes a timestamp given in epoch ms. */
  timestamp(value: number): void {
    const micros = (value - EPOCH_MS) * 1_000
    const high = Math.floor(micros / UINT32)
    this.#reserve(12)
    this.#at = this.#buffer.writeInt32BE(8, this.#at)
    this.#at = this.#buffer.writeInt32BE(high, this.#at)
    this.#at = this.#buffer.writeUInt32BE(micros - high * UINT32, this.#at)
  }

  text(value: string | null): void {
    if (value === null) return this.#null()
    this.#reserve(4 + value.length * UTF8_MAX)
    const size = this.#buffer.write(value, this.#at + 4)
    this.#buffer.writeInt32BE(size, this.#at)
    this.#at += 4 + size
  }

  json(value: string | null): void {
    if (value === null) return this.#null()
    this.#reserve(5 + value.length * UTF8_MAX)
    this.#buffer[this.#at + 4] = JSONB_VERSION
    const size = this.#buffer.write(value, this.#at + 5) + 1
    this.#buffer.writeInt32BE(size, this.#at)
    this.#at += 4 + size
  }

  bytes(value: Uint8Array | null): void {
    if (value === null) return this.#null()
    this.#reserve(4 + value.length)
    this.#at = this.#buffer.writeInt32BE(value.length, this.#at)
    this.#buffer.set(value, this.#at)
    this.#at += value.length
  }

  finished(): Buffer {
    this.row(TRAILER)
    return this.#buffer.subarray(0, this.#at)
  }

  #null(): void {
    this.#reserve(4)
    this.#at = this.#buffer.writeInt32BE(NULL, this.#at)
  }

  #reserve(size: number): void {
    const needed = this.#at + size
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2))
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
  }
}

/** Adds one row for each item. Starts a new statement every 8 MiB, which bounds the memory. */
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
