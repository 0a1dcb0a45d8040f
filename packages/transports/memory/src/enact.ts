import { type Decision, type Drop, RedriveError, type Settle } from '@redrive/core'
import { type Awaitable, type Enactment, LOST, type Place, placed, SETTLED } from '@redrive/runtime'
import type { MemoryConnection } from './broker.ts'
import {
  type Copy,
  type CopyOptions,
  confirmationOf,
  copyOf,
  type MemoryDelivery,
} from './headers.ts'
import type { ResolvedOptions } from './options.ts'
import { deadLetterQueue, quarantineQueue, replayedQueue } from './topology.ts'

/** Copies that the broker has confirmed, so that enacting again does not make a second one. */
export type Proven = WeakMap<MemoryDelivery, Copy>

type Settings = Pick<ResolvedOptions, 'capabilities' | 'now'>

/** Does what was decided: copy → prove the copy is stored → release the original; unknown means keep. */
export function enactOn(
  connection: MemoryConnection,
  proven: Proven,
  delivery: MemoryDelivery,
  decision: Decision,
  settings: Settings,
): Awaitable<Enactment> {
  switch (decision.kind) {
    case 'pause':
      return acknowledged(connection.release(delivery.tag), placed('returned'))
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

const ended = ({ kind }: Settle | Drop) => (kind === 'settle' ? SETTLED : placed('dropped'))

/** Everything that leaves something behind before the original goes: a copy, or the confirmation of a replay. */
type HandOffDecision = Exclude<Decision, { kind: 'pause' }>

async function handOff(
  connection: MemoryConnection,
  proven: Proven,
  delivery: MemoryDelivery,
  decision: HandOffDecision,
  settings: Settings,
): Promise<Enactment> {
  const { queue, place, delayMs } = destination(delivery, decision)
  try {
    const copy = proven.get(delivery) ?? leftBehind(delivery, decision, settings)
    if (!proven.has(delivery)) {
      await connection.publish(queue, copy.message, delayMs)
      proven.set(delivery, copy)
    }
    return await acknowledged(connection.ack(delivery.tag), placed(place, copy.truncated))
  } catch (error) {
    return { kind: 'unknown', error }
  }
}

function leftBehind(
  delivery: MemoryDelivery,
  decision: HandOffDecision,
  { capabilities, now }: Settings,
): Copy {
  if (decision.kind === 'settle' || decision.kind === 'drop') {
    return { message: confirmationOf(delivery, decision, now()), truncated: 0 }
  }
  const options = copyOptions(decision, capabilities.headerBudgetBytes)
  return copyOf(delivery, decision.cycle, options)
}

/** A retry carries its history; only what is given up also carries the stack. */
function copyOptions(
  decision: Extract<Decision, { kind: 'retryAt' | 'deadLetter' | 'quarantine' }>,
  budgetBytes: number,
): CopyOptions {
  const { reason, failure } = decision
  const stack = decision.kind === 'retryAt' ? undefined : failure?.stack
  return { reason, stack, budgetBytes }
}

function destination(
  { source }: MemoryDelivery,
  decision: HandOffDecision,
): { queue: string; place: Place; delayMs: number } {
  switch (decision.kind) {
    case 'settle':
      return { queue: replayedQueue(source), place: 'settled', delayMs: 0 }
    case 'drop':
      return { queue: replayedQueue(source), place: 'dropped', delayMs: 0 }
    case 'retryAt':
      return { queue: source, place: 'retry', delayMs: Math.max(0, decision.delayMs) }
    case 'deadLetter':
      return { queue: deadLetterQueue(source), place: 'dead_letter', delayMs: 0 }
    case 'quarantine':
      return {
        queue: quarantineQueue(source, decision.failure.class),
        place: 'quarantine',
        delayMs: 0,
      }
  }
}

function acknowledged(answer: Awaitable<boolean>, done: Enactment): Awaitable<Enactment> {
  if (typeof answer === 'boolean') return answer ? done : LOST
  return answer.then(
    (isOurs) => (isOurs ? done : LOST),
    (error: unknown) => ({ kind: 'unknown', error }),
  )
}

export const notOpen = (): RedriveError =>
  new RedriveError(
    'CLOSED',
    'The memory transport is not open. Call open() first, or let consume() do it.',
  )
