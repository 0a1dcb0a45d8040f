import { decodeHeaders, type FailureClass, nextCycle } from '@redrive/core'
import {
  type ConfirmationBatch,
  type DeadLetterSource,
  type DrainedBatch,
  type DrainedDeadLetter,
  type DrainedQueue,
  type ReplayMessage,
  parseConfirmation,
} from '@redrive/runtime'
import type { MemoryConnection } from './broker.ts'
import { copyOf, toDelivery } from './delivery.ts'
import type { ResolvedOptions } from './options.ts'
import { putBackEnvelopeOf, putBackOf } from './put-back.ts'
import type { Handed } from './queue.ts'
import { deadLetterQueue, quarantinePrefix, replayedQueue } from './topology.ts'

/** The control-plane side: drains dead letters and quarantine, publishes replays, reads their confirmations. */
export class MemorySource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: ResolvedOptions
  #connection: MemoryConnection

  /** @internal */
  constructor(options: ResolvedOptions) {
    this.source = options.queue
    this.#options = options
    this.#connection = this.#connect()
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const drained: { readonly queue: string; readonly handed: Handed }[] = []
    for (const queue of await this.#queues()) {
      const taken = await this.#connection.take(queue, limit - drained.length)
      drained.push(...taken.map((handed) => ({ queue, handed })))
    }
    return {
      deadLetters: drained.map(({ queue, handed }) => this.#read(queue, handed)),
      ...this.#ending(drained.map(({ handed }) => handed)),
    }
  }

  async confirmations({ limit }: { readonly limit: number }): Promise<ConfirmationBatch> {
    const taken = await this.#connection.take(replayedQueue(this.source), limit)
    const confirmations = taken.flatMap(({ message }) => parseConfirmation(message.bytes) ?? [])
    return { confirmations, ...this.#ending(taken) }
  }

  #ending(taken: readonly Handed[]): Pick<DrainedBatch, 'release' | 'abandon'> {
    return {
      release: () => each(taken, ({ tag }) => this.#connection.ack(tag)),
      abandon: () => each(taken, ({ tag }) => this.#connection.release(tag)),
    }
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { delivery, origin } = deadLetter
    const cycle = nextCycle(delivery.cycle)
    const budgetBytes = this.#options.capabilities.headerBudgetBytes
    const { message } = copyOf(delivery, cycle, { reason: undefined, budgetBytes, replayId })
    await this.#connection.publish(origin, message, 0)
  }

  /** Stores dead letters in the queues that they were drained from, unchanged. */
  async putBack(deadLetters: readonly DrainedDeadLetter[]): Promise<void> {
    const messages = deadLetters.map(putBackOf)
    for (const { queue, message } of messages) await this.#connection.publish(queue, message, 0)
  }

  async depth(): Promise<number> {
    let total = 0
    for (const { depth = 0 } of await this.queues()) total += depth
    return total
  }

  /** Returns the dead-letter queue, and each quarantine queue that a consumer has created. */
  async queues(): Promise<readonly DrainedQueue[]> {
    const found: DrainedQueue[] = []
    for (const name of await this.#queues())
      found.push({ name, depth: await this.#connection.depth(name) })
    return found
  }

  close(): Promise<void> {
    this.#connection.close()
    return Promise.resolve()
  }

  /** Connects again when needed: a control plane survives restarts of its broker. */
  #connect(): MemoryConnection {
    return this.#options.connect(() => {
      this.#connection = this.#connect()
    })
  }

  async #queues(): Promise<readonly string[]> {
    const quarantine = await this.#connection.queues(quarantinePrefix(this.source))
    return [deadLetterQueue(this.source), ...quarantine]
  }

  #read(queue: string, handed: Handed): DrainedDeadLetter {
    const {
      source: origin = this.source,
      reason = 'unknown',
      handler,
      stack,
    } = decodeHeaders(handed.message.headers)
    const delivery = { ...toDelivery(queue, handed), source: origin }
    const failureClass: FailureClass = delivery.cycle.history.at(-1)?.class ?? 'unknown'
    const quarantined = queue !== deadLetterQueue(this.source)
    return {
      delivery,
      origin,
      envelope: putBackEnvelopeOf(queue, handed, delivery),
      quarantined,
      class: failureClass,
      reason,
      // Every message of this broker has an id.
      identity: 'stable',
      ...(handler === undefined ? {} : { handler }),
      ...(stack === undefined ? {} : { stack }),
    }
  }
}

async function each(
  taken: readonly Handed[],
  act: (handed: Handed) => boolean | Promise<boolean>,
): Promise<void> {
  for (const handed of taken) await act(handed)
}
