import type { BaseOptions } from '@platformatic/kafka'
import { Client } from '../protocol/client.ts'
import { Fetcher, type OnMissing, type OnResult } from '../protocol/fetcher.ts'
import type { Assignment, Subscription } from './assignment.ts'
import type { Partition } from './partition.ts'

export interface ReadAheadDeps {
  readonly client: BaseOptions
  readonly topics: readonly Subscription[]
  readonly assignment: Assignment
  readonly onResult: OnResult
  readonly onMissing: OnMissing
}

/** 65,536 records parked behind unfinished records of their key, in all partitions together. Then reading stops. */
const MAX_PARKED = 65_536

/**
 * Reads the assigned partitions ahead of the handlers. A broker responds to the requests of one connection in order,
 * and to a fetch only when records exist. The source and the retries therefore use separate connections.
 */
export class ReadAhead {
  readonly #deps: ReadAheadDeps
  readonly #clients: readonly Client[]
  readonly #fetchers: readonly Fetcher[]

  constructor(deps: ReadAheadDeps) {
    this.#deps = deps
    const source = new Client(deps.client)
    const retries = new Client(deps.client)
    this.#clients = [source, retries]
    this.#fetchers = [
      this.#fetcher(source, (tierMs) => tierMs === 0),
      this.#fetcher(retries, (tierMs) => tierMs > 0),
    ]
  }

  #fetcher(client: Client, matchesTier: (tierMs: number) => boolean): Fetcher {
    const { topics, onResult, onMissing } = this.#deps
    return new Fetcher({
      client,
      topics: topics.filter(({ tierMs }) => matchesTier(tierMs)).map(({ name }) => name),
      wanted: () => this.#wanted(matchesTier),
      onResult,
      onMissing,
    })
  }

  /** Yields the partitions to read now. The others are marked full; `resume` wakes the fetchers when they have room. */
  *#wanted(matchesTier: (tierMs: number) => boolean): Generator<Partition> {
    const { assignment } = this.#deps
    const isOpen = !assignment.isClosed && assignment.parked < MAX_PARKED
    for (const partition of assignment.partitions) {
      if (!matchesTier(partition.tierMs)) continue
      if (isOpen && partition.wantsMore) yield partition
      else partition.isFull = true
    }
  }

  /** Starts reading, because more partitions may be wanted. */
  wake(): void {
    for (const fetcher of this.#fetchers) fetcher.wake()
  }

  /** Reads a partition again that was full and has room now. */
  resume(partition: Partition): void {
    if (!partition.isFull || !partition.wantsMore) return
    partition.isFull = false
    this.wake()
  }

  stop(): void {
    for (const fetcher of this.#fetchers) fetcher.stop()
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#clients.map((client) => client.close()))
  }
}
