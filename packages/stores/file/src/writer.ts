import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from '@redrive/runtime'
import type { Entries } from './entries.ts'
import { diskError } from './errors.ts'
import { FILE_MODE, makeFolder, syncFolder } from './folders.ts'
import { writeIndex } from './index-file.ts'
import { dayOf, newSegmentId, segmentPath } from './layout.ts'
import { Segment } from './segment.ts'

/** 4 MB in one write: a disk is not faster with more, and the first save waits for the last. */
const MAX_BATCH_BYTES = 4 * 2 ** 20

/** A pending write. Its lines are created just before the write, because the lines they replace may change until then. */
export interface Job {
  /** The name of the job. Of two jobs with the same name, the second goes into a later write: it needs the position of the first. */
  readonly name: string
  /** Returns complete lines, or an empty buffer when there is nothing to write any more. */
  lines(): Buffer
  /** Called when the lines are written and synced as configured. */
  written(segment: Segment, offset: number, lines: Buffer): void
}

interface Waiting {
  readonly job: Job
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

export interface WriterOptions {
  readonly directory: string
  readonly fsync: 'always' | 'batch' | 'never'
  readonly maxFileBytes: number
  readonly clock: Clock
}

/**
 * Appends to the segments of this process. One write at a time: jobs that arrive during a write wait, and
 * share the next write and its fsync.
 */
export class Writer {
  readonly #options: WriterOptions
  readonly #entries: Entries
  readonly #waiting: Waiting[] = []
  #current: { readonly segment: Segment; readonly file: FileHandle } | undefined
  #running: Promise<void> | undefined
  readonly #sealing = new Set<Promise<void>>()

  constructor(options: WriterOptions, entries: Entries) {
    this.#options = options
    this.#entries = entries
  }

  append(job: Job): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject })
      this.#running ??= this.#run()
    })
  }

  /** Ends the current segment, so that it can be removed. Waits for the running write. */
  async seal(): Promise<void> {
    while (this.#running !== undefined) await this.#running
    this.#running = this.#seal().finally(() => {
      this.#running = undefined
      if (this.#waiting.length > 0) this.#running = this.#run()
    })
    await this.#running
    await Promise.all(this.#sealing)
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) await this.#commit(this.#take())
    this.#running = undefined
  }

  /** Takes jobs for one write, and their lines. */
  #take(): readonly (Waiting & { readonly lines: Buffer })[] {
    const { fsync, maxFileBytes } = this.#options
    const most = fsync === 'always' ? 1 : Math.min(MAX_BATCH_BYTES, maxFileBytes)
    const taken: (Waiting & { readonly lines: Buffer })[] = []
    const names = new Set<string>()
    for (let bytes = 0; bytes < most; ) {
      const next = this.#waiting[0]
      if (next === undefined || names.has(next.job.name)) break
      const lines = next.job.lines()
      if (taken.length > 0 && bytes + lines.length > most) break
      this.#waiting.shift()
      names.add(next.job.name)
      taken.push({ ...next, lines })
      bytes += lines.length
    }
    return taken
  }

  async #commit(batch: readonly (Waiting & { readonly lines: Buffer })[]): Promise<void> {
    const bytes = Buffer.concat(batch.map(({ lines }) => lines))
    try {
      const segment = await this.#write(bytes)
      let offset = segment.scanned
      segment.scanned += bytes.length
      for (const { job, lines } of batch) {
        job.written(segment, offset, lines)
        offset += lines.length
      }
      for (const { resolve } of batch) resolve()
    } catch (cause) {
      await this.#abandon()
      const error = diskError(this.#options.directory, cause)
      for (const { reject } of batch) reject(error)
    }
  }

  async #write(bytes: Buffer): Promise<Segment> {
    const { segment, file } = await this.#room(bytes.length)
    for (let written = 0; written < bytes.length; ) {
      const left = bytes.length - written
      const position = segment.scanned + written
      written += (await file.write(bytes, written, left, position)).bytesWritten
    }
    if (this.#options.fsync !== 'never') await file.datasync()
    return segment
  }

  async #room(bytes: number): Promise<{ readonly segment: Segment; readonly file: FileHandle }> {
    const { maxFileBytes, clock } = this.#options
    const size = this.#current?.segment.scanned ?? 0
    const isFull = size > 0 && size + bytes > maxFileBytes
    const isOfToday = this.#current?.segment.id.startsWith(dayOf(clock.now())) ?? false
    if (isFull || !isOfToday) await this.#seal()
    this.#current ??= await this.#begin()
    return this.#current
  }

  async #begin(): Promise<{ readonly segment: Segment; readonly file: FileHandle }> {
    const { directory, fsync, clock } = this.#options
    const isSynced = fsync !== 'never'
    const id = newSegmentId(clock.now())
    const path = segmentPath(directory, id)
    const segment = new Segment(id)
    segment.isOurs = true
    // Before the file exists: a folder listing must not treat it as a file of another process.
    this.#entries.attach(segment)
    try {
      await makeFolder(dirname(path), isSynced)
      const file = await open(path, 'wx', FILE_MODE)
      segment.madeAt = performance.now()
      if (isSynced) await syncFolder(dirname(path))
      return { segment, file }
    } catch (error) {
      this.#entries.drop(segment)
      throw error
    }
  }

  /** Ends the segment for appends. Its index is written while other jobs continue. */
  async #seal(): Promise<void> {
    const current = this.#current
    if (current === undefined) return
    this.#current = undefined
    const { segment, file } = current
    await file.close()
    segment.isOurs = false
    segment.isFinal = true
    segment.rows.trim()
    // A cache: without it, the next process that opens the store reads the lines.
    const sealing = writeIndex(this.#options.directory, segment).catch(() => undefined)
    this.#sealing.add(sealing)
    void sealing.finally(() => this.#sealing.delete(sealing))
  }

  /**
   * Ends a segment after a failed write, which may have left a part of a line. Nothing is appended to it. The
   * part is not removed either, because others may have read it. From now on we read it as they do.
   */
  async #abandon(): Promise<void> {
    const current = this.#current
    if (current === undefined) return
    const { segment, file } = current
    const isUntouched = await file.stat().then(
      ({ size }) => size === segment.scanned,
      () => false,
    )
    if (isUntouched) return
    this.#current = undefined
    segment.isOurs = false
    // The file is not used any more, so an error on close has no effect.
    await file.close().catch(() => undefined)
  }
}
