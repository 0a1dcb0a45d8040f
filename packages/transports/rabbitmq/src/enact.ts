import type { Decision } from '@redrive/core'
import { type Enactment, LOST, type Place, placed, writeConfirmation } from '@redrive/runtime'
import type { ChannelModel } from 'amqplib'
import { declare, declareQueue } from './declare.ts'
import { type CopyOptions, copyOf, type RabbitMqDelivery, unheardIn } from './headers.ts'
import type { Publisher } from './publish.ts'
import {
  deadLetterQueue,
  delayQueue,
  quarantineQueue,
  replayedQueue,
  stepFor,
  type Topology,
} from './topology.ts'
import type { Unsettled } from './unsettled.ts'

/** Those that end a delivery: of a replay the control plane must hear. */
export type Ending = Extract<Decision, { kind: 'settle' | 'drop' }>
type CopyDecision = Exclude<Decision, Ending>

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
  readonly place: Place
  readonly truncated: number
}

/** What is left out, in turn, of a copy whose headers the client library cannot encode. */
const CONCESSIONS = [
  { hasHistory: true, headersAside: false },
  { hasHistory: false, headersAside: false },
  { hasHistory: false, headersAside: true },
] as const

/** Copy → prove that the copy is stored → release the original. Unknown means keep. */
export class HandOffs {
  readonly #parts: HandOffParts
  readonly #sent = new WeakMap<RabbitMqDelivery, Promise<Sent>>()
  readonly #makers: ReadonlyMap<string, Maker>

  constructor(parts: HandOffParts) {
    this.#parts = parts
    this.#makers = parts.isDeclaring ? makersOf(parts.topology) : new Map()
  }

  async enact(
    delivery: RabbitMqDelivery,
    decision: Decision,
    unsettled: Unsettled,
  ): Promise<Enactment> {
    try {
      const { proof, place, truncated } = await this.#sentOnce(delivery, decision)
      await this.#parts.publisher.inTime(proof)
      return unsettled.settle(delivery) ? placed(place, truncated) : LOST
    } catch (error) {
      return { kind: 'unknown', error }
    }
  }

  #sentOnce(delivery: RabbitMqDelivery, decision: Decision): Promise<Sent> {
    const known = this.#sent.get(delivery)
    if (known !== undefined) return known
    const sent = this.#send(delivery, decision)
    this.#sent.set(delivery, sent)
    // The broker said no, or can no longer say: the next time it is sent anew.
    sent.then(({ proof }) => proof).catch(() => this.#sent.delete(delivery))
    return sent
  }

  async #send(delivery: RabbitMqDelivery, decision: Decision): Promise<Sent> {
    const { queue, place, expiration } = this.#target(delivery.source, decision)
    const make = this.#makers.get(queue)
    if (make !== undefined) await this.#parts.publisher.ensure(queue, make)
    if (decision.kind === 'settle' || decision.kind === 'drop') {
      return { place, truncated: 0, proof: this.#sendConfirmation(delivery, queue, decision) }
    }
    const said = { ...chapter(delivery, decision), expiration }
    return { place, ...this.#sendCopy(delivery, queue, said) }
  }

  #sendConfirmation(delivery: RabbitMqDelivery, queue: string, decision: Ending): Promise<void> {
    const content = writeConfirmation(delivery, decision, Date.now())
    const properties = { contentType: 'application/json', expiration: CONFIRMATION_TTL }
    return this.#parts.publisher.send({ exchange: '', routingKey: queue, content, properties })
  }

  /** Our own history, then the producer's headers, give way when the client library cannot encode them. */
  #sendCopy(
    delivery: RabbitMqDelivery,
    queue: string,
    said: Omit<CopyOptions, 'budgetBytes' | 'headersAside'>,
  ): Pick<Sent, 'proof' | 'truncated'> {
    const send = (budgetBytes: number, headersAside: boolean) => {
      const { truncated, ...copy } = copyOf(delivery, { ...said, budgetBytes, headersAside })
      const proof = this.#parts.publisher.send({ exchange: '', routingKey: queue, ...copy })
      return { proof, truncated }
    }
    let problem: unknown
    for (const { hasHistory, headersAside } of CONCESSIONS) {
      try {
        return send(hasHistory ? this.#parts.budgetBytes : 0, headersAside)
      } catch (error) {
        if (!(error instanceof RangeError || error instanceof TypeError)) throw error
        problem = error
      }
    }
    throw problem
  }

  #target(source: string, decision: Decision): Target {
    const retentionMs = this.#parts.deadLetterRetentionMs
    const expiration = retentionMs > LONGEST_TTL_MS ? undefined : String(Math.round(retentionMs))
    switch (decision.kind) {
      case 'settle':
        return { queue: replayedQueue(source), place: 'settled' }
      case 'drop':
        return { queue: replayedQueue(source), place: 'dropped' }
      case 'pause':
        return { queue: source, place: 'returned' }
      case 'retryAt':
        return retryTarget(source, decision.delayMs)
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

type Maker = (connection: ChannelModel) => Promise<void>

/** What makes each queue that a copy may go to; the source is there, or nothing would be received. */
function makersOf(topology: Topology): ReadonlyMap<string, Maker> {
  const { deadLetters, later } = topology
  const makers = later.map((spec): [string, Maker] => [
    spec.name,
    (connection) => declareQueue(connection, spec),
  ])
  return new Map([...makers, [deadLetters.name, (connection) => declare(connection, topology)]])
}

interface Target {
  readonly queue: string
  readonly place: Place
  readonly expiration?: string | undefined
}

/**
 * 14 days: a control plane that was away for longer has asked the inbox or a person meanwhile. Where
 * nobody reads them at all, they must not pile up.
 */
const CONFIRMATION_TTL = '1209600000'

/** 49 days: the largest time to live the broker accepts. Beyond it, a dead letter stays until it is taken. */
const LONGEST_TTL_MS = 2 ** 32 - 1

/**
 * The time to live is the queue's, and the message says the same. Of its own accord it would not need
 * to: but in a cluster that makes the queue at the same moment for several clients, the first messages
 * were stored before the queue knew its time, and never left.
 */
function retryTarget(source: string, delayMs: number): Target {
  if (delayMs <= 0) return { queue: source, place: 'retry' }
  const stepMs = stepFor(delayMs)
  return { queue: delayQueue(source, stepMs), place: 'retry', expiration: String(stepMs) }
}

/** What the copy says about how it came here. */
function chapter(
  delivery: RabbitMqDelivery,
  decision: CopyDecision,
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
