import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '@redrive/runtime'
import type { Entries } from './entries.ts'
import { isCode } from './errors.ts'
import { readIndex, writeIndex } from './index-file.ts'
import { DAY, dayOf, INDEX_END, SEGMENT_END, type SegmentId, segmentPath } from './layout.ts'
import { entryOf, readLine } from './lines.ts'
import { scan } from './scan.ts'
import { addGone, type Deletions, Segment } from './segment.ts'

/**
 * 2 s: file systems store times in steps. A folder that changed just before it was listed may have
 * changed again in the same step.
 */
const TIME_STEP_MS = 2_000
/** A process writes to the folder of its day. No clock is two days late. */
const FINAL_AFTER_MS = 2 * 86_400_000
/** 1 MB: reading less again costs less than another file. */
const WORTH_AN_INDEX_BYTES = 2 ** 20

interface Listing {
  readonly mtimeMs: number
  /** When it was created, by the clock of file times. */
  readonly at: number
  readonly names: ReadonlySet<string>
}

/** Reads the files on disk: everything at first, then the changes of other processes. */
export class DirectoryScanner {
  readonly #directory: string
  readonly #entries: Entries
  readonly #clock: Clock
  readonly #listings = new Map<string, Listing>()
  /** Deletions that were read but not applied yet: their lines may be in a file that is read later. */
  #pendingDeletions: Deletions[] = []
  /** The folder listing with which the index of a segment was last read. */
  readonly #seenIn = new WeakMap<Segment, Listing>()
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(directory: string, entries: Entries, clock: Clock) {
    this.#directory = directory
    this.#entries = entries
    this.#clock = clock
  }

  /** Reads everything that was on disk when it was called. Waiting calls share one scan. */
  scan(): Promise<void> {
    if (this.#running === undefined) return this.#start()
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        return this.#start()
      })
    return this.#next
  }

  #start(): Promise<void> {
    this.#running = this.#scan().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #scan(): Promise<void> {
    await this.#seeAll()
    // A deletion of an unknown line: its file is newer than the folder listing, or was removed.
    if (this.#apply() > 0) {
      await this.#seeAll()
      this.#apply()
    }
    this.#pendingDeletions = []
  }

  async #seeAll(): Promise<void> {
    const days = (await namesIn(this.#directory)).filter((name) => DAY.test(name))
    for (const day of this.#listings.keys()) {
      if (!days.includes(day)) this.#forget(day)
    }
    const paths = days.map((day) => join(this.#directory, day))
    const found = await Promise.all(paths.map((path) => stat(path).catch(ignoreMissing)))
    for (const [position, day] of days.entries()) await this.#list(day, found[position]?.mtimeMs)
    await this.#scanOpen()
  }

  /** Reads the segments that other processes may still write to. */
  async #scanOpen(): Promise<void> {
    const open = [...this.#entries.segments.values()].filter((one) => !one.isOurs && !one.isFinal)
    const paths = open.map(({ id }) => segmentPath(this.#directory, id))
    const found = await Promise.all(paths.map((path) => stat(path).catch(ignoreMissing)))
    for (const [position, segment] of open.entries()) {
      await this.#seeNew(segment, found[position]?.size)
    }
  }

  #forget(day: string): void {
    this.#listings.delete(day)
    this.#dropMissing(day, new Set(), performance.now())
  }

  async #list(day: string, mtimeMs: number | undefined): Promise<void> {
    if (mtimeMs === undefined) return this.#forget(day)
    const known = this.#listings.get(day)
    if (known?.mtimeMs === mtimeMs && known.at - mtimeMs > TIME_STEP_MS) return
    const at = Date.now()
    const startedAt = performance.now()
    const names = new Set(await namesIn(join(this.#directory, day)))
    this.#listings.set(day, { mtimeMs, at, names })
    this.#dropMissing(day, names, startedAt)
    for (const name of names) {
      if (!name.endsWith(SEGMENT_END)) continue
      const id = `${day}/${name.slice(0, -SEGMENT_END.length)}`
      if (!this.#entries.segments.has(id)) await this.#open(id)
    }
  }

  /** Drops segments without a file, except segments that this process started during the listing: it may lack them. */
  #dropMissing(day: string, names: ReadonlySet<string>, startedAt: number): void {
    for (const segment of [...this.#entries.segments.values()]) {
      if (!segment.id.startsWith(`${day}/`) || segment.madeAt >= startedAt) continue
      const name = `${segment.id.slice(day.length + 1)}${SEGMENT_END}`
      if (!segment.isOurs && !names.has(name)) this.#entries.drop(segment)
    }
  }

  /** Opens an unknown segment: by its index first, the rest by its lines. */
  async #open(id: SegmentId): Promise<void> {
    const indexed = await this.#indexed(id)
    const segment = indexed ?? new Segment(id)
    // Our writer may have started it in the meantime: we already have its lines.
    if (this.#entries.segments.has(id)) return
    this.#entries.attach(segment)
    if (segment.gone.size > 0) this.#pendingDeletions.push(segment.gone)
    const before = segment.scanned
    if (!segment.isFinal) {
      const found = await stat(segmentPath(this.#directory, id)).catch(ignoreMissing)
      await this.#seeNew(segment, found?.size)
    }
    if (segment.scanned - before > WORTH_AN_INDEX_BYTES) await this.#remember(segment)
  }

  async #indexed(id: SegmentId): Promise<Segment | undefined> {
    try {
      return await readIndex(this.#directory, id)
    } catch {
      // A cache: when it is missing, damaged or unreadable, it is rebuilt from the lines.
      return undefined
    }
  }

  async #remember(segment: Segment): Promise<void> {
    try {
      await writeIndex(this.#directory, segment)
    } catch {
      // A cache: without it, opening takes longer. A full or read-only disk must not stop a reader.
    }
  }

  async #seeNew(segment: Segment, size: number | undefined): Promise<void> {
    if (size === undefined) return this.#entries.drop(segment)
    if (size > segment.scanned && size !== segment.seenSize) await this.#read(segment)
    segment.seenSize = size
    await this.#checkFinal(segment)
  }

  async #read(segment: Segment): Promise<void> {
    const gone: Deletions = new Map()
    const isThere = await scan(this.#directory, segment, (text, place) => {
      const line = readLine(text)
      if (line.kind === 'saved') {
        this.#entries.add(segment, entryOf(line.deadLetter, place), line.deadLetter.sink)
      } else if (line.kind === 'gone') {
        segment.recordDeletions(line.segment, line.offsets)
        addGone(gone, line.segment, line.offsets)
      }
    })
    if (gone.size > 0) this.#pendingDeletions.push(gone)
    if (!isThere) this.#entries.drop(segment)
  }

  /** Marks a segment as final when its writer left an index that marks its end, or when it is too old for writes. */
  async #checkFinal(segment: Segment): Promise<void> {
    const [day = '', name = ''] = segment.id.split('/')
    const listing = this.#listings.get(day)
    if (day <= dayOf(this.#clock.now() - FINAL_AFTER_MS)) segment.isFinal = true
    else if (listing !== this.#seenIn.get(segment) && listing?.names.has(`${name}${INDEX_END}`)) {
      this.#seenIn.set(segment, listing)
      const indexed = await this.#indexed(segment.id)
      segment.isFinal = indexed?.isFinal === true && indexed.scanned === segment.scanned
    }
    if (segment.isFinal) segment.rows.trim()
  }

  /** Applies deletions. Returns how many refer to unknown segments; those wait for another scan. */
  #apply(): number {
    const unknown: Deletions = new Map()
    for (const gone of this.#pendingDeletions) {
      for (const [id, offsets] of gone) {
        if (!this.#entries.segments.has(id)) addGone(unknown, id, offsets)
        else for (const offset of offsets) this.#entries.killAt(id, offset)
      }
    }
    this.#pendingDeletions = unknown.size > 0 ? [unknown] : []
    return unknown.size
  }
}

async function namesIn(path: string): Promise<readonly string[]> {
  return (await readdir(path).catch(ignoreMissing)) ?? []
}

function ignoreMissing(error: unknown): undefined {
  if (!isCode(error, 'ENOENT')) throw error
}
