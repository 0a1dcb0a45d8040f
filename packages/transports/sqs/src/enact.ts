import { type Decision, isRedriveError, RedriveError } from '@redrive/core'
import {
  type Destination,
  type Enactment,
  LOST,
  movedTo,
  SETTLED,
  serializeConfirmation,
  systemClock,
} from '@redrive/runtime'
import { sizeOf } from './attributes.ts'
import type { DeclaredQueues } from './declare.ts'
import { type Copy, type CopyOptions, copyOf, type Outgoing, type SqsDelivery } from './delivery.ts'
import { isNotOwned } from './requests.ts'
import { type Topology, nameOf } from './topology.ts'

export interface HandOffDeps {
  readonly queues: DeclaredQueues
  readonly topology: Topology
  /** Whether a returned message becomes visible in place, and is not copied. */
  readonly isReturnedInPlace: boolean
  /** Name of the handler, stored with dead letters. */
  readonly handler: string | undefined
  readonly isOwned: (delivery: SqsDelivery) => boolean
  /** Sends a message. Resolves when SQS has stored it. */
  readonly send: (url: string, message: Outgoing) => Promise<void>
  readonly release: (delivery: SqsDelivery) => Promise<void>
  /** Makes a message available again. SQS counts that as a delivery. */
  readonly show: (delivery: SqsDelivery) => Promise<void>
}

/** A message to store before the original is deleted. */
interface Plan {
  readonly url: string | undefined
  readonly destination: Destination
  /** Part of the deduplication id: a FIFO queue stores two messages with one id once. */
  readonly kind: 'retry' | 'dead' | 'replayed'
  readonly copy: CopyOptions
  readonly delayMs?: number
}

/** A copy that is larger than the queue allows. No other attempt stores it. */
const TOO_LARGE = Symbol('too large')

/** Stores a copy, waits until SQS confirms it, then deletes the original. Without a confirmation it keeps it. */
export class HandOffs {
  readonly #deps: HandOffDeps
  /** Results of copies that are stored. Enacting again deletes the original only. */
  readonly #stored = new WeakMap<SqsDelivery, Enactment>()

  constructor(deps: HandOffDeps) {
    this.#deps = deps
  }

  async enact(delivery: SqsDelivery, decision: Decision): Promise<Enactment> {
    const { isOwned, release } = this.#deps
    try {
      const stored = this.#stored.get(delivery)
      // A message whose copy is stored is never made available again: only its deletion remains.
      if (stored === undefined && decision.kind === 'pause' && this.#deps.isReturnedInPlace)
        return await this.#show(delivery)
      const done = stored ?? (await this.#store(delivery, decision))
      this.#stored.set(delivery, done)
      if (!isOwned(delivery)) return LOST
      await release(delivery)
      return done
    } catch (error) {
      return this.#failed(delivery, decision, error)
    }
  }

  #failed(
    delivery: SqsDelivery,
    decision: Decision,
    error: unknown,
  ): Enactment | Promise<Enactment> {
    if (isNotOwned(error)) return LOST
    if (!isRedriveError(error, 'REFUSED')) return { kind: 'unknown', error }
    const isTooLarge = TOO_LARGE in error
    // The message is as large as the queue allows. It is returned without a copy.
    if (isTooLarge && decision.kind === 'pause') return this.#show(delivery).catch(toUnknown)
    return { kind: 'refused', error, isTooLarge }
  }

  async #show(delivery: SqsDelivery): Promise<Enactment> {
    await this.#deps.show(delivery)
    return movedTo('returned')
  }

  /** Stores what remains of the delivery. Returns the result of the decision. */
  async #store(delivery: SqsDelivery, decision: Decision): Promise<Enactment> {
    if (decision.kind === 'settle' || decision.kind === 'drop') {
      const { replayed } = this.#deps.queues
      if (delivery.replayId !== undefined && replayed !== undefined) {
        const body = serializeConfirmation(delivery, decision, systemClock.now()).toString()
        await this.#deps.send(replayed, { body, attributes: {} })
      }
      return decision.kind === 'settle' ? SETTLED : movedTo('dropped')
    }
    const { url = '', destination, copy, kind, delayMs = 0 } = this.#planOf(delivery, decision)
    const { body, attributes, truncated } = this.#fitting(delivery, copy, url)
    const { isFifo } = this.#deps.topology
    const { group, messageId } = delivery.message
    // Fair queues have groups, too.
    const standard = group === undefined ? {} : { group }
    await this.#deps.send(url, {
      body,
      attributes,
      // SQS counts whole seconds. A retry is never early.
      ...(isFifo
        ? { group: group ?? messageId, deduplicationId: `${kind}:${messageId}` }
        : { ...standard, delaySeconds: Math.ceil(Math.max(0, delayMs) / 1_000) }),
    })
    const isMoved = url !== this.#deps.queues.url
    return movedTo(destination, truncated, isMoved ? nameOf(url) : this.#deps.topology.queue)
  }

  /** Returns a copy that the queue accepts: if necessary, without history. */
  #fitting(delivery: SqsDelivery, options: CopyOptions, url: string): Copy {
    const { queues } = this.#deps
    const maxBytes = url === queues.url ? queues.maxBytes : queues.maxDeadLetterBytes
    const fits = ({ body, attributes }: Copy) => sizeOf(body, attributes) <= maxBytes
    const whole = copyOf(delivery, options)
    if (fits(whole)) return whole
    const short = copyOf(delivery, { ...options, budgetBytes: 0 })
    if (fits(short)) return short
    throw tooLarge(delivery, nameOf(url), maxBytes)
  }

  #planOf(
    delivery: SqsDelivery,
    decision: Exclude<Decision, { readonly kind: 'settle' | 'drop' }>,
  ): Plan {
    const { queues, handler } = this.#deps
    switch (decision.kind) {
      case 'pause': {
        const { cycle, deliveryCount } = delivery
        // A returned message keeps its history; this delivery does not count.
        const copy = { cycle, deliveries: deliveryCount - 1 }
        return { url: queues.url, destination: 'returned', kind: 'retry', copy }
      }
      case 'retryAt': {
        const { cycle, reason, delayMs } = decision
        const copy = { cycle, reason }
        return { url: queues.url, destination: 'retry', kind: 'retry', copy, delayMs }
      }
      default: {
        const { cycle, reason, failure } = decision
        const isQuarantined = decision.kind === 'quarantine'
        const copy = { cycle, reason, handler, stack: failure.stack, isQuarantined }
        const destination = isQuarantined ? 'quarantine' : 'dead_letter'
        return { url: queues.deadLetters, destination, kind: 'dead', copy }
      }
    }
  }
}

const toUnknown = (error: unknown): Enactment =>
  isNotOwned(error) ? LOST : { kind: 'unknown', error }

const tooLarge = ({ id, source }: SqsDelivery, target: string, maxBytes: number) =>
  Object.assign(
    new RedriveError(
      'REFUSED',
      `A copy of the message "${id}" of the queue "${source}" would be larger than the ${maxBytes} bytes that the queue "${target}" allows. Raise its MaximumMessageSize, or send smaller messages.`,
    ),
    { [TOO_LARGE]: true },
  )
