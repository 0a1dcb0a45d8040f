import { type Decision, isRedriveError, RedriveError } from '@redrive/core'
import {
  type Enactment,
  LOST,
  type Destination,
  movedTo,
  serializeConfirmation,
} from '@redrive/runtime'
import type { ChannelModel } from 'amqplib'
import { messageOf } from './connection/connection.ts'
import { declare, declareQueue } from './declare.ts'
import { type CopyOptions, copyOf, type RabbitMqDelivery, unheardIn } from './delivery.ts'
import type { TopologyMode } from './options.ts'
import type { Publisher } from './publish.ts'
import {
  deadLetterQueue,
  delayQueue,
  quarantineQueue,
  replayedQueue,
  stepFor,
  type Topology,
} from './topology.ts'
import type { UnackedDeliveries } from './unacked.ts'

/** A decision that ends a delivery. If it was a replay, the control plane needs a confirmation. */
export type FinalDecision = Extract<Decision, { kind: 'settle' | 'drop' }>
type CopyDecision = Exclude<Decision, FinalDecision>

export interface HandOffDeps {
  readonly publisher: Publisher
  readonly topology: Topology
  /** With `verify`, queues that only some messages need must exist; otherwise they are declared here. */
  readonly mode: TopologyMode
  readonly budgetBytes: number
  readonly deadLetterRetentionMs: number
  /** Name of the handler, stored with dead letters. */
  readonly handler: string | undefined
}

/** A copy that was sent and may be stored. Enacting again waits for it instead of sending a second one. */
interface SentCopy {
  readonly proof: Promise<void>
  /** The result when it is confirmed and the original is acknowledged. */
  readonly done: Enactment
}

/** The attempts, in order, for a copy whose headers the client library cannot encode, or that do not fit into one frame. */
const ENCODING_FALLBACKS = [
  { hasHistory: true, headersAside: false },
  { hasHistory: false, headersAside: false },
  { hasHistory: false, headersAside: true },
] as const

/** Publishes a copy, waits until the broker confirms it, then acknowledges the original. Without a confirmation it keeps it. */
export class HandOffs {
  readonly #deps: HandOffDeps
  readonly #sent = new WeakMap<RabbitMqDelivery, Promise<SentCopy>>()
  readonly #makers: ReadonlyMap<string, QueueMaker>

  constructor(deps: HandOffDeps) {
    this.#deps = deps
    this.#makers = deps.mode === 'verify' ? new Map() : queueMakersOf(deps.topology, deps.mode)
  }

  async enact(
    delivery: RabbitMqDelivery,
    decision: Decision,
    unsettled: UnackedDeliveries,
  ): Promise<Enactment> {
    try {
      const { proof, done } = await this.#sentOnce(delivery, decision)
      await this.#deps.publisher.inTime(proof)
      return unsettled.settle(delivery) ? done : LOST
    } catch (error) {
      return unfinished(error)
    }
  }

  #sentOnce(delivery: RabbitMqDelivery, decision: Decision): Promise<SentCopy> {
    const known = this.#sent.get(delivery)
    if (known !== undefined) return known
    const sent = this.#send(delivery, decision)
    this.#sent.set(delivery, sent)
    // The broker rejected it, or the outcome is unknown: the next call sends it again.
    sent.then(({ proof }) => proof).catch(() => this.#sent.delete(delivery))
    return sent
  }

  async #send(delivery: RabbitMqDelivery, decision: Decision): Promise<SentCopy> {
    const { queue, destination, expiration } = this.#target(delivery.source, decision)
    const make = this.#makers.get(queue)
    if (make !== undefined) await this.#deps.publisher.ensure(queue, make)
    if (decision.kind === 'settle' || decision.kind === 'drop') {
      const proof = this.#sendConfirmation(delivery, queue, decision)
      return { proof, done: movedTo(destination) }
    }
    const details = failureDetailsOf(delivery, decision, this.#deps.handler)
    const { proof, truncated } = this.#sendCopy(delivery, queue, { ...details, expiration })
    const target = decision.kind === 'pause' ? undefined : queue
    return { proof, done: movedTo(destination, truncated, target) }
  }

  #sendConfirmation(
    delivery: RabbitMqDelivery,
    queue: string,
    decision: FinalDecision,
  ): Promise<void> {
    const content = serializeConfirmation(delivery, decision, Date.now())
    const properties = { contentType: 'application/json', expiration: CONFIRMATION_TTL }
    return this.#deps.publisher.send({ exchange: '', routingKey: queue, content, properties })
  }

  /** Sends a copy. If it cannot be encoded, omits the history, then stores the producer's headers as JSON. */
  #sendCopy(
    delivery: RabbitMqDelivery,
    queue: string,
    copyOptions: Omit<CopyOptions, 'budgetBytes' | 'headersAside'>,
  ): { readonly proof: Promise<void>; readonly truncated: number } {
    const send = (budgetBytes: number, headersAside: boolean) => {
      const { truncated, ...copy } = copyOf(delivery, { ...copyOptions, budgetBytes, headersAside })
      const proof = this.#deps.publisher.send({ exchange: '', routingKey: queue, ...copy })
      return { proof, truncated }
    }
    let problem: unknown
    for (const { hasHistory, headersAside } of ENCODING_FALLBACKS) {
      try {
        return send(hasHistory ? this.#deps.budgetBytes : 0, headersAside)
      } catch (error) {
        if (!(error instanceof RangeError || error instanceof TypeError)) throw error
        problem = error
      }
    }
    throw notPublishable(delivery, problem)
  }

  #target(source: string, decision: Decision): Target {
    const retentionMs = this.#deps.deadLetterRetentionMs
    const expiration = retentionMs > LONGEST_TTL_MS ? undefined : String(Math.round(retentionMs))
    const { prefix } = this.#deps.topology
    switch (decision.kind) {
      case 'settle':
        return { queue: replayedQueue(prefix), destination: 'settled' }
      case 'drop':
        return { queue: replayedQueue(prefix), destination: 'dropped' }
      case 'pause':
        return { queue: source, destination: 'returned' }
      case 'retryAt':
        return retryTarget(source, prefix, decision.delayMs)
      case 'deadLetter':
        return { queue: deadLetterQueue(prefix), destination: 'dead_letter', expiration }
      case 'quarantine':
        return {
          queue: quarantineQueue(prefix, decision.failure.class),
          destination: 'quarantine',
          expiration,
        }
    }
  }
}

/** Returns the result of a hand-off that the broker rejected, or may not have stored. */
function unfinished(error: unknown): Enactment {
  const isRefused = isRedriveError(error, 'REFUSED') || isRedriveError(error, 'UNROUTABLE')
  // The limit of the size is the same for all queues: a dead letter would be rejected as well.
  return isRefused ? { kind: 'refused', error, isTooLarge: false } : { kind: 'unknown', error }
}

const notPublishable = ({ id }: RabbitMqDelivery, cause: unknown) =>
  new RedriveError(
    'REFUSED',
    `A copy of the message "${id}" cannot be published, even without its history: ${messageOf(cause)}`,
    { cause },
  )

type QueueMaker = (connection: ChannelModel) => Promise<void>

/** Returns a function per destination queue that declares it. The source queue exists: deliveries come from it. */
function queueMakersOf(topology: Topology, mode: TopologyMode): ReadonlyMap<string, QueueMaker> {
  const { deadLetters, later } = topology
  const makers = later.map((spec): [string, QueueMaker] => [
    spec.name,
    (connection) => declareQueue(connection, spec, mode),
  ])
  return new Map([
    ...makers,
    [deadLetters.name, async (connection) => void (await declare(connection, topology, mode))],
  ])
}

interface Target {
  readonly queue: string
  readonly destination: Destination
  readonly expiration?: string | undefined
}

/**
 * 14 days: a control plane that was stopped for longer gets the outcome from the inbox or an operator.
 * Without a control plane, confirmations must not accumulate.
 */
const CONFIRMATION_TTL = '1209600000'

/** 49 days: the largest time to live the broker accepts. With a longer retention, a dead letter does not expire. */
const LONGEST_TTL_MS = 2 ** 32 - 1

/**
 * Returns the delay queue. The queue has the time to live, and each message repeats it. This is needed
 * in a cluster where several clients declare the queue concurrently. There, the first messages were
 * stored before the queue had its time to live, and never left.
 */
function retryTarget(source: string, prefix: string, delayMs: number): Target {
  if (delayMs <= 0) return { queue: source, destination: 'retry' }
  const stepMs = stepFor(delayMs)
  return { queue: delayQueue(prefix, stepMs), destination: 'retry', expiration: String(stepMs) }
}

/** Returns the failure details that a copy carries. */
function failureDetailsOf(
  delivery: RabbitMqDelivery,
  decision: CopyDecision,
  handler: string | undefined,
): Pick<CopyOptions, 'cycle' | 'reason' | 'handler' | 'stack' | 'unheard'> {
  switch (decision.kind) {
    case 'pause':
      // A returned message keeps its history unchanged.
      return { cycle: delivery.cycle, unheard: unheardIn(delivery.raw) }
    case 'retryAt':
      return { cycle: decision.cycle, reason: decision.reason }
    default:
      return {
        cycle: decision.cycle,
        reason: decision.reason,
        handler,
        stack: decision.failure.stack,
      }
  }
}
