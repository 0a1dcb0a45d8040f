import { type Decision, isRedriveError } from '@redrive/core'
import {
  type Destination,
  type Enactment,
  LOST,
  movedTo,
  SETTLED,
  serializeConfirmation,
} from '@redrive/runtime'
import type { NatsConnection } from '@nats-io/transport-node'
import { type Copy, type CopyOptions, copyOf, type NatsDelivery, toHeaders } from './delivery.ts'
import type { NatsServerHeaderTable } from './header-tables.ts'
import { acknowledge, isTooLarge, store } from './publish.ts'
import type { ServerClock } from './server-clock.ts'
import type { Topology } from './topology.ts'

export interface HandOffDeps {
  readonly connection: NatsConnection
  readonly clock: ServerClock
  readonly topology: Topology
  readonly budgetBytes: number
  readonly confirmTimeoutMs: number
  readonly deadLetterRetentionMs: number
  /** Name of the handler, stored with dead letters. */
  readonly handler: string | undefined
  readonly isOwned: (delivery: NatsDelivery) => boolean
}

/** A message to store before the original is acknowledged. */
interface Plan {
  readonly subject: string
  readonly destination: Destination
  /** Part of the message id: the server stores two messages with one id once. */
  readonly kind: 'retry' | 'dead' | 'replayed'
  readonly message: (budgetBytes: number) => Copy
  readonly delayMs?: number
  readonly target?: string
}

/** The headers that delay a copy. */
type ScheduleHeaders = Pick<NatsServerHeaderTable, 'Nats-Schedule' | 'Nats-Schedule-Target'>

/** 14 days: a control plane that was stopped for longer gets the outcome from the inbox or an operator. */
const CONFIRMATION_TTL_MS = 1_209_600_000
/** 100 years: the server cannot express a longer time in nanoseconds since 1970. */
const LONGEST_TTL_MS = 3_155_760_000_000

/** Stores a copy, waits until the server confirms it, then acknowledges the original. Without a confirmation it keeps it. */
export class HandOffs {
  readonly #deps: HandOffDeps
  /** Results of copies that are stored. Enacting again acknowledges only. */
  readonly #stored = new WeakMap<NatsDelivery, Enactment>()

  constructor(deps: HandOffDeps) {
    this.#deps = deps
  }

  async enact(delivery: NatsDelivery, decision: Decision): Promise<Enactment> {
    const { connection, confirmTimeoutMs, isOwned } = this.#deps
    try {
      const done = this.#stored.get(delivery) ?? (await this.#store(delivery, decision))
      this.#stored.set(delivery, done)
      if (!isOwned(delivery)) return LOST
      await acknowledge(connection, delivery.message.reply ?? '', confirmTimeoutMs)
      return done
    } catch (error) {
      return isRedriveError(error, 'REFUSED')
        ? { kind: 'refused', error, isTooLarge: isTooLarge(error) }
        : { kind: 'unknown', error }
    }
  }

  async #store(delivery: NatsDelivery, decision: Decision): Promise<Enactment> {
    const plan = this.#planOf(delivery, decision)
    const { connection, budgetBytes, confirmTimeoutMs } = this.#deps
    const due = await this.#dueHeaders(plan)
    const { stream, sequence, storedAt, deliveries } = delivery.place
    const place = `${stream}-${sequence}-${storedAt}`
    // Each owner confirms a replay; of the copies of a message, one is enough.
    const messageId = `${plan.kind}:${place}${plan.kind === 'replayed' ? `:${deliveries}` : ''}`
    const subject =
      due === undefined ? plan.subject : `${this.#deps.topology.retry.delayed}.${place}`
    const send = async (budget: number): Promise<number> => {
      const { bytes, headers, truncated } = plan.message(budget)
      for (const [name, value] of Object.entries(due ?? {})) headers.set(name, value)
      await store(connection, { subject, bytes, headers, messageId }, confirmTimeoutMs)
      return truncated
    }
    const truncated = await send(budgetBytes).catch((error: unknown) => {
      // Without the history it may fit.
      if (isTooLarge(error)) return send(0)
      throw error
    })
    return plan.kind === 'replayed'
      ? ended(decision)
      : movedTo(plan.destination, truncated, plan.target)
  }

  /** Returns the headers that delay a copy; undefined when it is due now. */
  async #dueHeaders({ delayMs = 0, subject }: Plan): Promise<ScheduleHeaders | undefined> {
    if (delayMs <= 0) return undefined
    const dueAt = Math.ceil((await this.#deps.clock.latest()) + delayMs)
    return {
      'Nats-Schedule': `@at ${new Date(dueAt).toISOString()}`,
      'Nats-Schedule-Target': subject,
    }
  }

  #planOf(delivery: NatsDelivery, decision: Decision): Plan {
    const { topology, deadLetterRetentionMs, handler } = this.#deps
    const { retry, dead } = topology
    const copy =
      (options: Omit<CopyOptions, 'budgetBytes'>, ttlMs?: number) => (budgetBytes: number) =>
        withTtl(copyOf(delivery, { ...options, budgetBytes }), ttlMs)
    switch (decision.kind) {
      case 'settle':
      case 'drop': {
        const bytes = serializeConfirmation(delivery, decision, Date.now())
        const headers = { 'content-type': 'application/json' }
        const message = () =>
          withTtl({ bytes, headers: toHeaders(headers), truncated: 0 }, CONFIRMATION_TTL_MS)
        return { subject: dead.confirmations, destination: 'settled', kind: 'replayed', message }
      }
      case 'pause': {
        const { cycle, deliveryCount } = delivery
        // A returned message keeps its history; this delivery does not count.
        const message = copy({ cycle, deliveries: deliveryCount - 1 })
        return { subject: retry.subject, destination: 'returned', kind: 'retry', message }
      }
      case 'retryAt': {
        const { cycle, reason, delayMs } = decision
        return {
          subject: retry.subject,
          destination: 'retry',
          kind: 'retry',
          message: copy({ cycle, reason }),
          delayMs,
          target: retry.stream,
        }
      }
      default: {
        const { cycle, reason, failure } = decision
        const isQuarantined = decision.kind === 'quarantine'
        return {
          subject: isQuarantined ? dead.quarantine : dead.deadLetters,
          destination: isQuarantined ? 'quarantine' : 'dead_letter',
          kind: 'dead',
          message: copy({ cycle, reason, handler, stack: failure.stack }, deadLetterRetentionMs),
          target: dead.stream,
        }
      }
    }
  }
}

function withTtl(copy: Copy, ttlMs = Number.POSITIVE_INFINITY): Copy {
  if (ttlMs <= LONGEST_TTL_MS)
    copy.headers.set('Nats-TTL', `${Math.max(1, Math.ceil(ttlMs / 1_000))}s`)
  return copy
}

/** Returns the result of a decision that ends a delivery without a copy. */
export const ended = ({ kind }: Decision): Enactment =>
  kind === 'settle' ? SETTLED : movedTo('dropped')
