import { readdir, stat, unlink, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '@redrive/runtime'
import { isCode } from './errors.ts'
import { FILE_MODE, makeFolder } from './folders.ts'
import { hexOf, type IdHash } from './hashing.ts'
import { CLAIMS } from './layout.ts'

/** Three renewals per lease: two may be late. */
const RENEWALS_PER_LEASE = 3

/**
 * Claims that show all processes which dead letter is being sent: a file that only one process can create.
 * Its time is renewed while the sending lasts. A file older than a lease belongs to a crashed process;
 * the process that creates the file with the next number gets the claim. File times and `Date.now` use
 * the machine's clock. An injected clock does not affect files.
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

  /** Takes the claim. Returns a function that releases it; undefined when another process has it. */
  async take(hash: IdHash): Promise<(() => Promise<void>) | undefined> {
    await makeFolder(this.#folder, false)
    const hex = hexOf(hash)
    const before = await this.#others(hex, '')
    if (before.some(({ isStale }) => !isStale)) return undefined
    const number = Math.max(-1, ...before.map(({ name }) => Number(name.split('.')[1]))) + 1
    const own = `${hex}.${number}`
    if (!(await this.#make(own))) return undefined
    // Another process may have checked earlier and created another number: then neither has the claim.
    const others = await this.#others(hex, own)
    if (others.some(({ isStale }) => !isStale)) {
      await this.#remove(own)
      return undefined
    }
    for (const { name } of others) await this.#remove(name)
    return this.#keep(own)
  }

  /** Removes the claims of crashed processes. */
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

  async #others(prefix: string, own: string): Promise<readonly ClaimFile[]> {
    const found: ClaimFile[] = []
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
      // Without a renewal the lease expires, and with it the claim. No other action is needed.
      utimes(join(this.#folder, name), now, now).catch(() => undefined)
      cancel = this.#clock.after(this.#leaseMs / RENEWALS_PER_LEASE, beat)
    }
    cancel = this.#clock.after(this.#leaseMs / RENEWALS_PER_LEASE, beat)
    return async () => {
      cancel()
      // A claim that cannot be removed expires. The dead letter was sent in any case.
      await this.#remove(name).catch(() => undefined)
    }
  }

  async #remove(name: string): Promise<void> {
    await unlink(join(this.#folder, name)).catch(undefinedIfMissing)
  }
}

interface ClaimFile {
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
