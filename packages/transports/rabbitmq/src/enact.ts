import type { Decision } from '@redrive/core'
import { type Enactment, LOST, type Place, placed } from '@redrive/runtime'
import { type CopyOptions, copyOf, type RabbitMqDelivery, unheardIn } from './headers.ts'
import type { Publisher } from './publish.ts'
import { deadLetterQueue, delayQueue, quarantineQueue, stepFor, type Topology } from './topology.ts'
import type { Unsettled } from './unsettled.ts'

export type HandOffDecision = Exclude<Decision, { kind: 'settle' | 'drop' }>

export interface HandOffParts {
  readonly publisher: Publisher
  readonly topology: Topology
  /** Whether queues that only some messages need are made here, or must be there. */
  readonly isDeclaring: boolean
  readonly budgetBytes: number
  readonly deadLetterRetentionMs: number
}

/** A copy on its way, or stored: enacting again waits for it instead of making a second one. */
interface Sent {
  readonly proof: Promise<void>
  readonly truncated: number
}

/** Copy → prove that the copy is stored → release the original. Unknown means keep. */
export class HandOffs {
  readonly #parts: HandOffParts
  readonly #sent = new WeakMap<RabbitMqDelivery, Sent>()

  constructor(parts: HandOffParts) {
    this.#parts = parts
  }

  async enact(
    delivery: RabbitMqDelivery,
    decision: HandOffDecision,
    unsettled: Unsettled,
  ): Promise<Enactment> {
    const target = this.#target(delivery.source, decision)
    try {
      const sent = this.#sent.get(delivery) ?? (await this.#send(delivery, decision, target))
      await this.#parts.publisher.inTime(sent.proof)
      return unsettled.settle(delivery) ? placed(target.place, sent.truncated) : LOST
    } catch (error) {
      return { kind: 'unknown', error }
    }
  }

  async #send(
    delivery: RabbitMqDelivery,
    decision: HandOffDecision,
    target: Target,
  ): Promise<Sent> {
    const { publisher, topology, isDeclaring } = this.#parts
    const { queue } = target
    const spec = topology.later.find(({ name }) => name === queue)
    if (isDeclaring && spec !== undefined) await publisher.ensure(spec)
    const sent = this.#sendCopy(delivery, queue, (budgetBytes) => ({
      budgetBytes,
      expiration: target.expiration,
      ...chapter(delivery, decision),
    }))
    this.#sent.set(delivery, sent)
    // The broker said no, or can no longer say: the next time it is sent anew.
    sent.proof.catch(() => this.#sent.delete(delivery))
    return sent
  }

  #sendCopy(
    delivery: RabbitMqDelivery,
    queue: string,
    options: (budgetBytes: number) => CopyOptions,
  ): Sent {
    const send = (budgetBytes: number) => {
      const { truncated, ...copy } = copyOf(delivery, options(budgetBytes))
      const proof = this.#parts.publisher.send({ exchange: '', routingKey: queue, ...copy })
      return { proof, truncated }
    }
    try {
      return send(this.#parts.budgetBytes)
    } catch (error) {
      // The producer's own headers fill what AMQP allows: ours shrink to what cannot be left out.
      if (error instanceof RangeError) return send(0)
      throw error
    }
  }

  #target(source: string, decision: HandOffDecision): Target {
    const retentionMs = this.#parts.deadLetterRetentionMs
    const expiration = retentionMs > LONGEST_TTL_MS ? undefined : String(retentionMs)
    switch (decision.kind) {
      case 'pause':
        return { queue: source, place: 'returned' }
      case 'retryAt':
        return { queue: retryQueue(source, decision.delayMs), place: 'retry' }
      case 'deadLetter':
        return { queue: deadLetterQueue(source), place: 'dead_letter', expiration }
      case 'quarantine':
        return {
          queue: quarantineQueue(source, decision.failure.class),
          place: 'quarantine',
          expiration,
        }
    }
  }
}

interface Target {
  readonly queue: string
  readonly place: Place
  readonly expiration?: string | undefined
}

/** 49 days: the largest time to live the broker accepts. Beyond it, a dead letter stays until it is taken. */
const LONGEST_TTL_MS = 2 ** 32 - 1

const retryQueue = (source: string, delayMs: number): string =>
  delayMs <= 0 ? source : delayQueue(source, stepFor(delayMs))

/** What the copy says about how it came here. */
function chapter(
  delivery: RabbitMqDelivery,
  decision: HandOffDecision,
): Pick<CopyOptions, 'cycle' | 'reason' | 'stack' | 'unheard'> {
  switch (decision.kind) {
    case 'pause':
      // Returned unharmed: nothing is added to it, and nothing forgotten.
      return { cycle: delivery.cycle, unheard: unheardIn(delivery.raw) }
    case 'retryAt':
      return { cycle: decision.cycle, reason: decision.reason }
    default:
      return {
        cycle: decision.cycle,
        reason: decision.reason,
        stack: decision.failure.stack,
      }
  }
}
