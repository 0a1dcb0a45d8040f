import { randomUUID } from 'node:crypto'
import type { Clock } from '@redrive/runtime'
import type { TransportFault } from '../../src/index.ts'
import type { LeaseStore } from './store.ts'

/** 2 ms there and 2 ms back: a request is in progress for a while, as on a network. */
const TRAVEL_MS = 2

/** The kind of a request. The faults of the contract apply to a hand-off, which stores data. */
type RequestKind = 'read' | 'hand_off'

/** The connection of one process to the store, with the faults of the contract. */
export class Connection {
  readonly owner: string = randomUUID()
  readonly #store: LeaseStore
  readonly #clock: Clock
  readonly #fault: TransportFault | undefined
  readonly #isRefusing: () => boolean
  #isAlive = true
  #isResponseDropped = false

  constructor(
    store: LeaseStore,
    clock: Clock,
    fault: TransportFault | undefined,
    isRefusing: () => boolean,
  ) {
    this.#store = store
    this.#clock = clock
    this.#fault = fault
    this.#isRefusing = isRefusing
  }

  /** Ends the process like `kill -9`. The store cannot detect that, so its leases end immediately. */
  die(): void {
    this.#isAlive = false
    this.loseLeases()
  }

  loseLeases(): void {
    this.#store.endLeasesOf(this.owner)
  }

  dropResponse(): void {
    this.#isResponseDropped = true
  }

  /** Runs a script in the store. Rejects when the process has crashed or the store restarts in between. */
  async run<T>(kind: RequestKind, script: (store: LeaseStore) => T): Promise<T> {
    const { restarts } = this.#store
    await this.#travel()
    this.#check(restarts)
    if (kind === 'hand_off' && this.#fault === 'copies_refused' && this.#isRefusing()) {
      throw new Error("OOM command not allowed when used memory > 'maxmemory'")
    }
    const answer = script(this.#store)
    if (kind === 'hand_off' && this.#fault === 'dies_halfway') this.die()
    await this.#travel()
    this.#check(restarts)
    if (kind === 'hand_off') this.#maybeDrop()
    return answer
  }

  #maybeDrop(): void {
    if (!this.#isResponseDropped) return
    this.#isResponseDropped = false
    throw new Error('read ETIMEDOUT')
  }

  #check(restarts: number): void {
    if (!this.#isAlive) throw new Error('This process has crashed.')
    if (restarts !== this.#store.restarts) throw new Error('read ECONNRESET')
  }

  #travel(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(TRAVEL_MS, resolve)
    })
  }
}
