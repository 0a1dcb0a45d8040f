import { type Decision, type Drop, isRedriveError, RedriveError, type Settle } from '@redrive/core'
import {
  type Awaitable,
  type Enactment,
  LOST,
  type Destination,
  movedTo,
  SETTLED,
} from '@redrive/runtime'
import type { MemoryConnection } from './broker.ts'
import { type Copy, confirmationOf, copyOf, type MemoryDelivery } from './delivery.ts'
import type { ResolvedOptions } from './options.ts'
import { deadLetterQueue, quarantineQueue, replayedQueue } from './topology.ts'

/** Copies that the broker has confirmed, so that enacting again does not make a second one. */
export type Proven = WeakMap<MemoryDelivery, Copy>

interface Settings extends Pick<ResolvedOptions, 'capabilities' | 'now'> {
  /** Name of the handler, stored with dead letters. */
  readonly handler: string | undefined
}

/** Enacts a decision: store a copy → wait for the confirmation → release the original. After unknown it keeps the original. */
export function enactOn(
  connection: MemoryConnection,
  proven: Proven,
  delivery: MemoryDelivery,
  decision: Decision,
  settings: Settings,
): Awaitable<Enactment> {
  switch (decision.kind) {
    case 'pause':
      return acknowledged(connection.release(delivery.tag), movedTo('returned'))
    case 'settle':
    case 'drop':
      if (delivery.replayId === undefined) {
        return acknowledged(connection.ack(delivery.tag), ended(decision))
      }
      return handOff(connection, proven, delivery, decision, settings)
    default:
      return handOff(connection, proven, delivery, decision, settings)
  }
}

const ended = ({ kind }: Settle | Drop) => (kind === 'settle' ? SETTLED : movedTo('dropped'))

/** Decisions that store a copy or a confirmation before the original is released. */
type HandOffDecision = Exclude<Decision, { kind: 'pause' }>

async function handOff(
  connection: MemoryConnection,
  proven: Proven,
  delivery: MemoryDelivery,
  decision: HandOffDecision,
  settings: Settings,
): Promise<Enactment> {
  const { queue, destination, delayMs } = targetOf(delivery, decision)
  try {
    const copy = proven.get(delivery) ?? leftBehind(delivery, decision, settings)
    if (!proven.has(delivery)) {
      await connection.publish(queue, copy.message, delayMs)
      proven.set(delivery, copy)
    }
    const target = destination === 'settled' || destination === 'dropped' ? undefined : queue
    const done = movedTo(destination, copy.truncated, target)
    return await acknowledged(connection.ack(delivery.tag), done)
  } catch (error) {
    return isRedriveError(error, 'DLQ_FULL')
      ? { kind: 'refused', error, isTooLarge: false }
      : { kind: 'unknown', error }
  }
}

function leftBehind(
  delivery: MemoryDelivery,
  decision: HandOffDecision,
  { capabilities, now, handler }: Settings,
): Copy {
  if (decision.kind === 'settle' || decision.kind === 'drop') {
    return { message: confirmationOf(delivery, decision, now()), truncated: 0 }
  }
  const { cycle, reason, failure } = decision
  const budgetBytes = capabilities.headerBudgetBytes
  // A retry carries its history; only a dead letter also carries the handler and the stack.
  const end = decision.kind === 'retryAt' ? {} : { handler, stack: failure?.stack }
  return copyOf(delivery, cycle, { reason, budgetBytes, ...end })
}

function targetOf(
  { source }: MemoryDelivery,
  decision: HandOffDecision,
): { queue: string; destination: Destination; delayMs: number } {
  switch (decision.kind) {
    case 'settle':
      return { queue: replayedQueue(source), destination: 'settled', delayMs: 0 }
    case 'drop':
      return { queue: replayedQueue(source), destination: 'dropped', delayMs: 0 }
    case 'retryAt':
      return { queue: source, destination: 'retry', delayMs: Math.max(0, decision.delayMs) }
    case 'deadLetter':
      return { queue: deadLetterQueue(source), destination: 'dead_letter', delayMs: 0 }
    case 'quarantine':
      return {
        queue: quarantineQueue(source, decision.failure.class),
        destination: 'quarantine',
        delayMs: 0,
      }
  }
}

function acknowledged(ack: Awaitable<boolean>, done: Enactment): Awaitable<Enactment> {
  if (typeof ack === 'boolean') return ack ? done : LOST
  return ack.then(
    (isOurs) => (isOurs ? done : LOST),
    (error: unknown) => ({ kind: 'unknown', error }),
  )
}

export const notOpen = (): RedriveError =>
  new RedriveError(
    'CLOSED',
    'The memory transport is not open. Call open() first, or let consume() do it.',
  )
