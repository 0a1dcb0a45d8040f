import { readdir, stat, unlink, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '@redrive/runtime'
import { isCode } from './errors.ts'
import { FILE_MODE, makeFolder } from './folders.ts'
import { hexOf, type IdHash } from './hashing.ts'
import { CLAIMS } from './layout.ts'

/** Three signs of life in a lease: two may be late. */
const BEATS_PER_LEASE = 3

/**
 * Who is sending a dead letter, for all processes to see: a file that only one can make. Its time is
 * renewed while the sending lasts; one whose time is a lease ago belongs to a process that died, and
 * whoever makes the file of the next number has the claim. File times and `Date.now` are by the same
 * clock, the machine's: an injected one knows nothing of files.
 */
export class Claims {
  readonly #folder: string
  readonly #leaseMs: number
  readonly #clock: Clock

  constructor(directory: string, leaseMs: number, clock: Clock) {
    this.#folder = join(directory, CLAIMS)
    this.#leaseMs = leaseMs
    this.#clock = clock
  }

  /** What lets go of it; undefined when someone else has it. */
  async take(hash: IdHash): Promise<(() => Promise<void>) | undefined> {
    await makeFolder(this.#folder, false)
    const hex = hexOf(hash)
    const before = await this.#others(hex, '')
    if (before.some(({ isStale }) => !isStale)) return undefined
    const number = Math.max(-1, ...before.map(({ name }) => Number(name.split('.')[1]))) + 1
    const own = `${hex}.${number}`
    if (!(await this.#make(own))) return undefined
    // Someone may have looked before us and made another number: then nobody has it.
    const others = await this.#others(hex, own)
    if (others.some(({ isStale }) => !isStale)) {
      await this.#remove(own)
      return undefined
    }
    for (const { name } of others) await this.#remove(name)
    return this.#keep(own)
  }

  /** Removes what processes left that died. */
  async tidy(): Promise<void> {
    for (const { name, isStale } of await this.#others('', '')) {
      if (isStale) await this.#remove(name)
    }
  }

  async #make(name: string): Promise<boolean> {
    const owner = JSON.stringify({ host: hostname(), pid: process.pid })
    try {
      await writeFile(join(this.#folder, name), `${owner}\n`, { flag: 'wx', mode: FILE_MODE })
      return true
    } catch (error) {
      if (isCode(error, 'EEXIST')) return false
      throw error
    }
  }

  async #others(prefix: string, own: string): Promise<readonly Found[]> {
    const found: Found[] = []
    for (const name of await readdir(this.#folder).catch(noneIfMissing)) {
      if (!name.startsWith(prefix) || name === own) continue
      const known = await stat(join(this.#folder, name)).catch(undefinedIfMissing)
      if (known === undefined) continue
      found.push({ name, isStale: Date.now() - known.mtimeMs > this.#leaseMs })
    }
    return found
  }

  #keep(name: string): () => Promise<void> {
    let cancel = () => {}
    const beat = () => {
      const now = new Date()
      // Without a sign of life the lease ends, and with it the claim: nothing else to be done here.
      utimes(join(this.#folder, name), now, now).catch(() => undefined)
      cancel = this.#clock.after(this.#leaseMs / BEATS_PER_LEASE, beat)
    }
    cancel = this.#clock.after(this.#leaseMs / BEATS_PER_LEASE, beat)
    return async () => {
      cancel()
      // One that cannot be removed lapses; what was sent is sent.
      await this.#remove(name).catch(() => undefined)
    }
  }

  async #remove(name: string): Promise<void> {
    await unlink(join(this.#folder, name)).catch(undefinedIfMissing)
  }
}

interface Found {
  readonly name: string
  readonly isStale: boolean
}

function undefinedIfMissing(error: unknown): undefined {
  if (!isCode(error, 'ENOENT')) throw error
}

function noneIfMissing(error: unknown): string[] {
  if (!isCode(error, 'ENOENT')) throw error
  return []
}
