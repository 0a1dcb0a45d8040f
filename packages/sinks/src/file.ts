import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { CheckedSink, OutboundEvent } from '@redrive/runtime'
import { closed } from './errors.ts'
import { bodyLineOf, lineOf } from './events.ts'
import { Problems, type SinkOptions } from './options.ts'

export interface FileOptions extends SinkOptions {
  /** The file to append to. It is created when it is missing; its folder must exist. */
  readonly path: string
  /** `true`: resolves after an fsync, not only when the system has the data. Costs milliseconds per batch. Default `false`. */
  readonly sync?: boolean
  /** Permissions of a new file. Events are not public. Default 0o640. */
  readonly mode?: number
  /** Maximum events in one write (1–10,000, default 1,000). */
  readonly batch?: number
  /** `'body'`: a line is only the body of the event, without its id, type and headers. Default `'event'`. */
  readonly line?: 'event' | 'body'
}

const LINES = { event: lineOf, body: bodyLineOf } as const

/** 1,000: about a megabyte per write, which is fast on every disk. */
const BATCH = 1_000
const MODE = 0o640
const NEWLINE = 10

/** Appends one line of JSON per event. After a rotation it starts a new file at the same path. */
export class FileSink implements CheckedSink {
  readonly name: string
  readonly batch: number
  readonly #path: string
  readonly #isSynced: boolean
  readonly #mode: number
  readonly #lineOf: (event: OutboundEvent) => string
  #handle: FileHandle | undefined
  /** True when the file ends with half a line: the next line must not be appended to it. */
  #isTorn = false
  #isClosed = false
  /** One write at a time: concurrent writes could mix their lines. */
  #last: Promise<void> = Promise.resolve()

  constructor(options: FileOptions) {
    const { name, path, sync = false, mode = MODE, batch = BATCH, line = 'event' } = options
    const problems = new Problems()
    const isPath = typeof path === 'string' && path !== ''
    if (!isPath) problems.expected('path', path, 'the path of a file')
    this.batch = problems.batch(batch)
    if (!Object.hasOwn(LINES, line)) problems.expected('line', line, "'event' or 'body'")
    problems.refuse('file()')
    // Resolved now, because the program may change its folder later.
    this.#path = resolve(path)
    this.name = name ?? `file ${this.#path}`
    this.#isSynced = sync
    this.#mode = mode
    this.#lineOf = LINES[line]
  }

  send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    return this.#inTurn(async () => {
      signal.throwIfAborted()
      if (this.#isClosed) throw closed(this.name)
      await this.#append(Buffer.from(events.map(this.#lineOf).join('')))
    })
  }

  /** Runs work in sequence. A failure does not affect the next one. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => undefined)
    return turn
  }

  async #append(lines: Buffer): Promise<void> {
    const handle = await this.#current()
    const bytes = this.#isTorn ? Buffer.concat([Buffer.of(NEWLINE), lines]) : lines
    try {
      await writeWhole(handle, bytes)
      if (this.#isSynced) await handle.datasync()
      this.#isTorn = false
    } catch (error) {
      // The end of the file is unknown now; the next open checks it.
      await this.#release()
      throw error
    }
  }

  /** Returns the file that is at the path now. */
  async #current(): Promise<FileHandle> {
    if (this.#handle !== undefined && !(await this.#isSame(this.#handle))) await this.#release()
    if (this.#handle !== undefined) return this.#handle
    const { O_APPEND, O_CREAT, O_RDWR } = constants
    this.#handle = await open(this.#path, O_APPEND | O_CREAT | O_RDWR, this.#mode)
    this.#isTorn = await endsTorn(this.#handle)
    return this.#handle
  }

  async #isSame(handle: FileHandle): Promise<boolean> {
    const [ours, there] = await Promise.all([handle.stat(), stat(this.#path).catch(absent)])
    return there !== undefined && ours.ino === there.ino && ours.dev === there.dev
  }

  async #release(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }

  /** Checks that the file can be created and written. */
  healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    return this.#inTurn(async () => {
      signal.throwIfAborted()
      if (this.#isClosed) throw closed(this.name)
      await this.#current()
    })
  }

  close(): Promise<void> {
    this.#isClosed = true
    return this.#inTurn(() => this.#release())
  }
}

/** Writes everything. A full disk writes a part, and fails with the next write. */
async function writeWhole(handle: FileHandle, bytes: Buffer): Promise<void> {
  let written = 0
  while (written < bytes.length) written += (await handle.write(bytes, written)).bytesWritten
}

/** Returns whether the file ends with half a line, which a crash during a write leaves. */
async function endsTorn(handle: FileHandle): Promise<boolean> {
  const { size, isFile } = await handle.stat().then((found) => ({
    size: found.size,
    isFile: found.isFile(),
  }))
  if (!isFile || size === 0) return false
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1)
  return buffer[0] !== NEWLINE
}

function absent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
  throw error
}
