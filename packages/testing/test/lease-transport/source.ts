import { decodeHeaders, FIRST_CYCLE } from '@redrive/core'
import type {
  ConfirmationBatch,
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  ReplayMessage,
} from '@redrive/runtime'
import type { DeadRecord, Group, Kept } from './group.ts'
import { copyOf, toDelivery } from './headers.ts'
import type { LeaseStore } from './store.ts'

/** A minute: a crashed control plane keeps dead letters no longer. */
const LEASE_MS = 60_000

/** The control plane of one group. Its requests take no time: with a virtual clock, the contract requires it. */
export class LeaseSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #store: LeaseStore
  readonly #group: string
  readonly #open = new Set<() => Promise<void>>()

  constructor(store: LeaseStore, source: string, group: string) {
    this.#store = store
    this.source = source
    this.#group = group
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const taken = this.#store.drain(this.#group, limit, LEASE_MS)
    return {
      deadLetters: taken.map(({ record }) => this.#read(record)),
      ...this.#ending(({ dead }) => dead, taken),
    }
  }

  async confirmations({ limit }: { readonly limit: number }): Promise<ConfirmationBatch> {
    const taken = this.#store.confirmations(this.#group, limit, LEASE_MS)
    return {
      confirmations: taken.map(({ record }) => record),
      ...this.#ending((group) => group.confirmations, taken),
    }
  }

  #ending<T>(listOf: (group: Group) => Kept<T>[], taken: readonly Kept<T>[]) {
    const end = async (isReleased: boolean) => {
      if (!this.#open.delete(abandon)) return
      this.#store.endDrain(listOf(this.#store.group(this.#group)), taken, isReleased)
    }
    const abandon = () => end(false)
    this.#open.add(abandon)
    return { release: () => end(true), abandon }
  }

  #read({ message, isQuarantined }: DeadRecord): DrainedDeadLetter {
    const { reason = 'unknown', handler, stack } = decodeHeaders(message.headers)
    const claimed = { message, token: '', deliveryCount: 1 }
    const { token: _, ...delivery } = toDelivery(this.source, claimed)
    return {
      delivery,
      origin: this.source,
      envelope: {},
      quarantined: isQuarantined,
      class: delivery.cycle.history.at(-1)?.class ?? 'unknown',
      reason,
      identity: 'stable',
      ...(handler === undefined ? {} : { handler }),
      ...(stack === undefined ? {} : { stack }),
    }
  }

  async publish({ deadLetter: { delivery }, replayId }: ReplayMessage): Promise<void> {
    const cycle = { ...FIRST_CYCLE, number: delivery.cycle.number + 1 }
    const { message } = copyOf(delivery, { cycle, replayId })
    this.#store.replay(this.#group, replayId, message)
  }

  async depth(): Promise<number> {
    return this.#store.group(this.#group).dead.length
  }

  async lag(): Promise<number> {
    return this.#store.lag(this.#group)
  }

  async close(): Promise<void> {
    for (const abandon of [...this.#open]) await abandon()
  }
}
