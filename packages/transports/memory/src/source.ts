import type { FailureClass } from '@redrive/core'
import type {
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  ReplayMessage,
} from '@redrive/runtime'
import type { MemoryConnection } from './broker.ts'
import { copyOf, toDelivery } from './headers.ts'
import type { ResolvedOptions } from './options.ts'
import type { Handed } from './queue.ts'
import { deadLetterQueue, quarantinePrefix } from './topology.ts'
import { decodeHeaders } from '@redrive/core'

/** The control plane's side: drains dead letters and quarantine, publishes replays. */
export class MemorySource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: ResolvedOptions
  #connection: MemoryConnection

  constructor(options: ResolvedOptions) {
    this.source = options.queue
    this.#options = options
    this.#connection = this.#connect()
  }

  async drain({ most }: { readonly most: number }): Promise<DrainedBatch> {
    const drained: { readonly queue: string; readonly handed: Handed }[] = []
    for (const queue of await this.#queues()) {
      const taken = await this.#connection.take(queue, most - drained.length)
      drained.push(...taken.map((handed) => ({ queue, handed })))
    }
    const tags = drained.map(({ handed }) => handed.tag)
    return {
      deadLetters: drained.map(({ queue, handed }) => this.#read(queue, handed)),
      release: () => each(tags, (tag) => this.#connection.ack(tag)),
      abandon: () => each(tags, (tag) => this.#connection.release(tag)),
    }
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { delivery, origin } = deadLetter
    const cycle = {
      ...delivery.cycle,
      number: delivery.cycle.number + 1,
      attempts: 0,
      firstFailedAt: undefined,
      lastDelayMs: 0,
      notBefore: undefined,
      history: [],
    }
    const budgetBytes = this.#options.capabilities.headerBudgetBytes
    const { message } = copyOf(delivery, cycle, { reason: undefined, budgetBytes, replayId })
    await this.#connection.publish(origin, message, 0)
  }

  async depth(): Promise<number> {
    let total = 0
    for (const queue of await this.#queues()) total += await this.#connection.depth(queue)
    return total
  }

  close(): Promise<void> {
    this.#connection.close()
    return Promise.resolve()
  }

  /** A control plane outlives its broker's restarts. */
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
    const { source: origin = this.source, reason = 'unknown' } = decodeHeaders(
      handed.message.headers,
    )
    const delivery = { ...toDelivery(queue, handed), source: origin }
    const failureClass: FailureClass = delivery.cycle.history.at(-1)?.class ?? 'unknown'
    const quarantined = queue !== deadLetterQueue(this.source)
    return { delivery, origin, envelope: {}, quarantined, class: failureClass, reason }
  }
}

async function each(
  tags: readonly number[],
  act: (tag: number) => boolean | Promise<boolean>,
): Promise<void> {
  for (const tag of tags) await act(tag)
}
