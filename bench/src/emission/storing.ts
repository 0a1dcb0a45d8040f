// Measures how fast events are stored on disk when their sink is down, compared with a handwritten
// file.
import { type FileHandle, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { fileStore } from '@redrive/file-store'
import {
  createEmitter,
  type Emitter,
  type DeadLetterStore,
  type StoredDeadLetter,
  serializeStoredDeadLetter,
} from '@redrive/runtime'
import { loki } from '@redrive/sinks'
import type { Candidate } from '../harness.ts'
import { orderPaid, TYPE } from './event.ts'
import { BATCH, paced } from './pace.ts'

/** An address without a server: no program listens on port 1. */
const NOBODY = 'http://127.0.0.1:1'
const SINK = 'loki'

const ownFolder = () => mkdtemp(join(tmpdir(), 'redrive-benchmark-'))

// ---- Redrive: the breaker is open, the event is stored
// --------------------------------------------

interface Opened {
  readonly directory: string
  readonly emitter: Emitter
  readonly store: DeadLetterStore
}

/** Opens the breaker with one failure. No sample lasts until the breaker would allow a probe. */
async function opened(): Promise<Opened> {
  const directory = await ownFolder()
  const store = fileStore({ directory, fsync: 'batch' })
  const emitter = createEmitter({
    sinks: { [SINK]: loki({ url: NOBODY, batch: BATCH }) },
    store,
    queue: { maxEvents: 2_000, onFull: 'wait' },
    policy: {
      retry: { attempts: 1 },
      breaker: { trip: { kind: 'consecutive', failures: 1 }, minOpen: '10m', maxOpen: '10m' },
    },
  })
  await emitter.emit({ type: TYPE, data: orderPaid(0) })
  const phase = emitter.stats().sinks[SINK]?.breaker
  if (phase === 'open') return { directory, emitter, store }
  await closed({ directory, emitter })
  throw new Error(`The breaker is ${phase} instead of open`)
}

async function closed({ directory, emitter }: Pick<Opened, 'directory' | 'emitter'>) {
  await emitter.close()
  await rm(directory, { recursive: true })
}

/** Uses a separate store for each sample. */
export function storing(name: string): Candidate {
  let world: Opened | undefined
  const current = () => {
    if (world === undefined) throw new Error('The sample was not prepared. Call prepare() first.')
    return world
  }
  return {
    name,
    async prepare() {
      world = await opened()
    },
    async run(count) {
      const { emitter } = current()
      await paced(count, (number) => emitter.emit({ type: TYPE, data: orderPaid(number) }))
    },
    async verify(count) {
      const { store } = current()
      const { count: stored } = await store.stats()
      await closed(current())
      world = undefined
      // The event that opened the breaker is stored as well.
      if (stored !== count + 1) throw new Error(`${stored - 1} stored instead of ${count}`)
    },
    async close() {
      if (world !== undefined) await closed(world)
    },
  }
}

// ---- The lower bound: append, and one fdatasync for all waiting lines
// ------------------------------

/**
 * Gives the same promise as a save of the store: resolves when the line survives a crash of the
 * machine.
 */
class GroupCommit {
  readonly #file: FileHandle
  #waiting: { readonly line: string; readonly resolve: () => void }[] = []
  #isWriting = false
  #error: unknown

  constructor(file: FileHandle) {
    this.#file = file
  }

  append(line: string): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#error !== undefined) return reject(this.#error as Error)
      this.#waiting.push({ line, resolve })
      if (this.#isWriting) return
      this.#isWriting = true
      setImmediate(() => {
        this.#write().catch((error: unknown) => {
          this.#error = error
        })
      })
    })
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      await this.#file.appendFile(batch.map(({ line }) => line).join(''))
      await this.#file.datasync()
      for (const { resolve } of batch) resolve()
    }
    this.#isWriting = false
  }
}

/** Returns what Redrive writes for such an event, so that the lines are the same. */
async function example(): Promise<StoredDeadLetter> {
  const world = await opened()
  await world.emitter.emit({ type: TYPE, data: orderPaid(0) })
  const { deadLetters } = await world.store.list({ limit: 2 })
  await closed(world)
  const last = deadLetters.at(-1)
  if (last === undefined) throw new Error('Redrive stored nothing')
  return last
}

function lineOf(number: number, like: StoredDeadLetter): string {
  const id = randomUUID()
  const bytes = Buffer.from(JSON.stringify(orderPaid(number)))
  const at = Date.now()
  const event = { ...like.event, id, key: id, at, bytes }
  return `${serializeStoredDeadLetter({ ...like, id: `${id}/${SINK}`, event, savedAt: at })}\n`
}

export async function appending(name: string): Promise<Candidate> {
  const like = await example()
  const directory = await ownFolder()
  const path = join(directory, 'lines')
  let file: FileHandle | undefined
  return {
    name,
    async prepare() {
      file = await open(path, 'w')
    },
    async run(count) {
      const commits = new GroupCommit(file as FileHandle)
      await paced(count, (number) => commits.append(lineOf(number, like)))
    },
    async verify(count) {
      await file?.close()
      const lines = (await readFile(path, 'utf8')).split('\n').length - 1
      if (lines !== count) throw new Error(`${lines} lines instead of ${count}`)
    },
    close: () => rm(directory, { recursive: true }),
  }
}
