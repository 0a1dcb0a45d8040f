import { randomUUID } from 'node:crypto'
import { type Script, type ScriptRunner, scriptRunner } from '@redrive/redis-internal'
import type { Entry, EntryRef, Field } from './delivery.ts'
import type { ResolvedSourceOptions } from './options.ts'
import { CLAIM, DECLARE, END, HAND_OFF, LEAVE, RECOVER, RENEW } from './scripts.ts'

/** 500: to claim or end this number of entries blocks the server for about a millisecond. */
export const MAX_ENTRIES = 500

/** More entries than a consumer owns. */
const MANY = 1_000_000

/** The result of a claim. */
export interface ClaimResult {
  readonly entries: readonly Entry[]
  /** Number of entries that were trimmed before they were handled. */
  readonly trimmed: number
  /** Whether the consumer owns entries at the server that it does not know: `recover` returns them. */
  readonly hasUnknown: boolean
}

export interface ClaimOptions {
  /** Maximum number of entries. */
  readonly count: number
  /** With a lease, also entries whose lease has ended. */
  readonly leaseMs: number | undefined
  /** Number of entries that the consumer knows as its own. Default: no limit. */
  readonly known?: number
}

/**
 * The result of the end of a claim. `ended`: the claim had ended before, so this may be a repetition. `trimmed`: it was not
 * returned, because the stream does not have the entry any more.
 */
export type EndResult = 'done' | 'lost' | 'ended' | 'trimmed'

export interface MemberOptions extends Pick<ResolvedSourceOptions, 'client' | 'timeoutMs'> {
  readonly group: string
  /** Streams in the order of the numbers that scripts use. `own` is the first one. */
  readonly streams: readonly string[]
  /** Whether the last stream belongs to producers: handled entries stay there, because other groups read them. */
  readonly isLastShared: boolean
  /** Sorted set of retries. */
  readonly retry?: string
}

/** One consumer of a group, with a name that no other consumer has. */
export class Member {
  readonly #options: MemberOptions
  readonly #runScript: ScriptRunner
  readonly #consumer = `redrive:${randomUUID()}`
  #starts: readonly string[]

  constructor(options: MemberOptions) {
    this.#options = options
    this.#runScript = scriptRunner({ ...options, replies: 'bytes' })
    this.#starts = options.streams.map(() => '-')
  }

  /** Creates missing streams and groups. */
  async declare(starts: readonly string[]): Promise<void> {
    await this.#run(DECLARE, [this.#options.group, ...starts])
  }

  async claim({ count, leaseMs, known = MANY }: ClaimOptions): Promise<ClaimResult> {
    const { retry, streams } = this.#options
    const keys = retry === undefined ? streams : [...streams, retry]
    const hasRetries = retry === undefined ? '0' : '1'
    const lease = leaseMs === undefined ? '' : String(leaseMs)
    const args = [...this.#name, String(count), lease, hasRetries, String(known), ...this.#starts]
    const reply = await this.#runScript(CLAIM, keys, args)
    const [starts, trimmed, unknown, claimed] = reply as ClaimReply
    this.#starts = starts.map(String)
    const entries = claimed.map(([number, id, delivered, fields]) => ({
      isOwn: !this.#isShared(number),
      id: String(id),
      count: delivered,
      fields,
    }))
    return { entries, trimmed, hasUnknown: unknown === 1 }
  }

  /** True when the last search for ended leases did not reach the end. */
  get hasMoreEnded(): boolean {
    return this.#starts.some((start) => start !== '-')
  }

  /** Acknowledges or returns entries. */
  async end(ends: readonly EntryEnd[]): Promise<readonly EndResult[]> {
    const { isLastShared } = this.#options
    const rows = ends.flatMap(({ what, entry }) => [what, ...this.#rowOf(entry)])
    const args = [...this.#name, isLastShared ? '1' : '0', ...rows]
    const results = (await this.#run(END, args)) as readonly number[]
    return results.map((result) => END_RESULTS.get(result) ?? 'lost')
  }

  /** Stores a copy and acknowledges the entry. */
  async handOff(
    { isOwn, id, count }: EntryRef,
    { target, kind, ms, fields }: Target,
  ): Promise<EndResult> {
    const keys = [this.#streamOf(isOwn), target]
    const owner = [...this.#name, id, String(count), isOwn ? '0' : '1']
    const args = [...owner, kind, String(Math.ceil(ms)), ...fields]
    const result = await this.#runScript(HAND_OFF, keys, args)
    return END_RESULTS.get(Number(result)) ?? 'lost'
  }

  /** Renews leases. Returns a flag for each entry: true when another consumer owns it. */
  async renew(entries: readonly EntryRef[]): Promise<readonly boolean[]> {
    const batches = batchesOf(entries).map(async (some) => {
      const rows = some.flatMap((entry) => this.#rowOf(entry))
      return (await this.#run(RENEW, [...this.#name, ...rows])) as readonly number[]
    })
    return (await Promise.all(batches)).flat().map((lost) => lost === 1)
  }

  /**
   * Returns the entries that this consumer owns at the server, except these. Resolves with the number of entries that
   * were trimmed.
   */
  async recover(known: readonly EntryRef[]): Promise<number> {
    const rows = known.flatMap((entry) => this.#rowOf(entry).slice(0, 2))
    const args = [...this.#name, String(MAX_ENTRIES), ...rows]
    let allTrimmed = 0
    for (;;) {
      const reply = await this.#run(RECOVER, args)
      const [returned, trimmed] = reply as readonly [number, number]
      allTrimmed += trimmed
      if (returned + trimmed < MAX_ENTRIES) return allTrimmed
    }
  }

  /** Removes the consumer from the group, unless it owns entries. */
  async leave(): Promise<void> {
    await this.#run(LEAVE, this.#name)
  }

  get #name(): readonly [group: string, consumer: string] {
    return [this.#options.group, this.#consumer]
  }

  #run(script: Script, args: readonly Field[]): Promise<unknown> {
    return this.#runScript(script, this.#options.streams, args)
  }

  #rowOf({ isOwn, id, count }: EntryRef): readonly string[] {
    const number = isOwn ? 1 : this.#options.streams.length
    return [String(number), id, String(count)]
  }

  #streamOf(isOwn: boolean): string {
    return this.#options.streams.at(isOwn ? 0 : -1) ?? ''
  }

  #isShared(number: number): boolean {
    return this.#options.isLastShared && number === this.#options.streams.length
  }
}

/** Splits entries, so that no script has more than the maximum. */
function batchesOf<T>(all: readonly T[]): readonly (readonly T[])[] {
  const batches: (readonly T[])[] = []
  for (let i = 0; i < all.length; i += MAX_ENTRIES) batches.push(all.slice(i, i + MAX_ENTRIES))
  return batches
}

type ClaimReply = readonly [
  starts: readonly Buffer[],
  trimmed: number,
  unknown: number,
  claimed: readonly ClaimedRow[],
]
type ClaimedRow = readonly [number: number, id: Buffer, count: number, fields: readonly Buffer[]]

export interface EntryEnd {
  readonly what: 'done' | 'return'
  readonly entry: EntryRef
}

/** Where a copy is stored. */
export interface Target {
  readonly target: string
  readonly kind: 'retry' | 'stream'
  /** Delay of a retry, or retention of the stream; 0: no limit. */
  readonly ms: number
  readonly fields: readonly Field[]
}

const END_RESULTS: ReadonlyMap<number, EndResult> = new Map([
  [1, 'done'],
  [0, 'lost'],
  [2, 'ended'],
  [-1, 'trimmed'],
])
