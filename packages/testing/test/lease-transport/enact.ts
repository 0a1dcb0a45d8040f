import type { Decision } from '@redrive/core'
import {
  type Enactment,
  LOST,
  movedTo,
  type Destination,
  parseConfirmation,
  SETTLED,
  serializeConfirmation,
  type TransportNeeds,
} from '@redrive/runtime'
import type { Connection } from './connection.ts'
import { copyOf, type LeaseDelivery } from './headers.ts'
import type { Mistake } from './mistakes.ts'
import type { Ownership, Remains } from './store.ts'

export interface EnactOptions {
  readonly connection: Connection
  readonly group: string
  readonly needs: TransportNeeds
  readonly now: () => number
  readonly has: (mistake: Mistake) => boolean
}

interface Plan {
  readonly remains: Remains
  readonly done: Enactment
}

/** Enacts the decision in one script: the lease ends, and the remaining data is stored with it. */
export async function enactOn(
  delivery: LeaseDelivery,
  decision: Decision,
  options: EnactOptions,
): Promise<Enactment> {
  const { remains, done } = planOf(delivery, decision, options)
  const { token, id } = delivery
  const ownership = { group: options.group, token, id }
  try {
    return (await end(ownership, remains, options)) ? done : LOST
  } catch (error) {
    if (options.has('refused_copy_counted_as_done')) return done
    return { kind: 'unknown', error }
  }
}

async function end(
  ownership: Ownership,
  remains: Remains,
  { connection, group, has }: EnactOptions,
): Promise<boolean> {
  const isHandOff = remains.kind !== 'nothing' && remains.kind !== 'returned'
  if (isHandOff && has('acknowledged_before_copy')) {
    const isOurs = await connection.run('hand_off', (store) => store.end(ownership, NOTHING))
    await connection.run('hand_off', (store) => store.leave(group, remains))
    return isOurs
  }
  if (isHandOff && has('repeated_copy')) {
    await connection.run('hand_off', (store) => store.leave(group, remains))
    return connection.run('read', (store) => store.end(ownership, NOTHING))
  }
  return connection.run(isHandOff ? 'hand_off' : 'read', (store) => store.end(ownership, remains))
}

const NOTHING: Remains = { kind: 'nothing' }

function planOf(delivery: LeaseDelivery, decision: Decision, options: EnactOptions): Plan {
  switch (decision.kind) {
    case 'pause':
      return { remains: { kind: 'returned' }, done: movedTo('returned') }
    case 'settle':
      return { remains: confirmationOf(delivery, decision, options), done: SETTLED }
    case 'drop':
      return { remains: confirmationOf(delivery, decision, options), done: movedTo('dropped') }
    case 'retryAt': {
      const { cycle, reason, delayMs } = decision
      const { message, truncated } = copyOf(delivery, { cycle, reason })
      return { remains: { kind: 'retry', message, delayMs }, done: movedTo('retry', truncated) }
    }
    default:
      return givenUp(delivery, decision, options)
  }
}

function confirmationOf(
  delivery: LeaseDelivery,
  decision: Extract<Decision, { kind: 'settle' | 'drop' }>,
  { now }: EnactOptions,
): Remains {
  if (delivery.replayId === undefined) return NOTHING
  const confirmation = parseConfirmation(serializeConfirmation(delivery, decision, now()))
  return confirmation === undefined ? NOTHING : { kind: 'confirmation', confirmation }
}

function givenUp(
  delivery: LeaseDelivery,
  decision: Extract<Decision, { kind: 'deadLetter' | 'quarantine' }>,
  { needs, has }: EnactOptions,
): Plan {
  const { cycle, reason, failure } = decision
  const stack = has('stack_dropped') ? undefined : failure.stack
  const handler = has('handler_dropped') ? undefined : needs.handler
  const { message, truncated } = copyOf(delivery, { cycle, reason, handler, stack })
  const isQuarantined = decision.kind === 'quarantine'
  const place: Destination = isQuarantined ? 'quarantine' : 'dead_letter'
  return {
    remains: { kind: 'dead', message, isQuarantined, retentionMs: needs.deadLetterRetentionMs },
    done: movedTo(place, truncated),
  }
}
