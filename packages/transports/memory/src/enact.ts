import { type Decision, RedriveError } from '@redrive/core'
import { type Awaitable, type Enactment, LOST, type Place, placed, SETTLED } from '@redrive/runtime'
import type { MemoryConnection } from './broker.ts'
import { type Copy, type CopyOptions, copyOf, type MemoryDelivery } from './headers.ts'
import { deadLetterQueue, quarantineQueue } from './topology.ts'

/** Copies that the broker has confirmed, so that enacting again does not make a second one. */
export type Proven = WeakMap<MemoryDelivery, Copy>

/** Does what was decided: copy → prove the copy is stored → release the original; unknown means keep. */
export function enactOn(
  connection: MemoryConnection,
  proven: Proven,
  delivery: MemoryDelivery,
  decision: Decision,
  budgetBytes: number,
): Awaitable<Enactment> {
  switch (decision.kind) {
    case 'settle':
      return acknowledged(connection.ack(delivery.tag), SETTLED)
    case 'drop':
      return acknowledged(connection.ack(delivery.tag), placed('dropped'))
    case 'pause':
      return acknowledged(connection.release(delivery.tag), placed('returned'))
    default:
      return handOff(connection, proven, delivery, decision, budgetBytes)
  }
}

type HandOffDecision = Extract<Decision, { kind: 'retryAt' | 'deadLetter' | 'quarantine' }>

async function handOff(
  connection: MemoryConnection,
  proven: Proven,
  delivery: MemoryDelivery,
  decision: HandOffDecision,
  budgetBytes: number,
): Promise<Enactment> {
  const { queue, place, delayMs } = destination(delivery, decision)
  try {
    const copy =
      proven.get(delivery) ?? copyOf(delivery, decision.cycle, copyOptions(decision, budgetBytes))
    if (!proven.has(delivery)) {
      await connection.publish(queue, copy.message, delayMs)
      proven.set(delivery, copy)
    }
    return await acknowledged(connection.ack(delivery.tag), placed(place, copy.truncated))
  } catch (error) {
    return { kind: 'unknown', error }
  }
}

/** A retry carries its history; only what is given up also carries the stack. */
function copyOptions(decision: HandOffDecision, budgetBytes: number): CopyOptions {
  const { reason, failure } = decision
  const stack = decision.kind === 'retryAt' ? undefined : failure?.stack
  return { reason, stack, budgetBytes }
}

function destination(
  { source }: MemoryDelivery,
  decision: HandOffDecision,
): { queue: string; place: Place; delayMs: number } {
  switch (decision.kind) {
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
