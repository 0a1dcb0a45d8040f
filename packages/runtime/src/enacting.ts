import type { Decision, Delivery, Pause } from '@redrive/core'
import type { Awaitable } from './awaitable.ts'
import { hasListeners } from './events.ts'
import type { HandOff } from './handoff.ts'
import type { SlowedDeadLetters } from './slowed-dead-letters.ts'
import type { Idle } from './idle.ts'
import type { LoopDeps } from './loop-deps.ts'
import {
  hasOwnFailures,
  type PendingDelivery,
  pauseDecision,
  returnDecision,
  splitDelay,
} from './pending-delivery.ts'
import { type Enactment, SETTLED } from './ports/transport.ts'

/** Why and which waiting deliveries are returned. */
interface ReturnRule {
  readonly mustReturnAll: boolean
  returnReason(): Pause['reason']
}

/** Applies decisions at the broker and reports when the consumer has nothing left to do. */
export class Enacting<D extends Delivery> {
  readonly #deps: LoopDeps<D>
  readonly #handOff: HandOff<D>
  readonly #slowed: SlowedDeadLetters<D>
  readonly #idle: Idle

  constructor(deps: LoopDeps<D>, handOff: HandOff<D>, slowed: SlowedDeadLetters<D>, idle: Idle) {
    this.#deps = deps
    this.#handOff = handOff
    this.#slowed = slowed
    this.#idle = idle
  }

  /** Settles a success. The common case creates no event and no promise, because this is the hot path. */
  settle(delivery: D, decision: Decision): void {
    let enactment: Awaitable<Enactment>
    try {
      enactment = this.#deps.transport.enact(delivery, decision)
    } catch (error) {
      enactment = { kind: 'unknown', error }
    }
    if (enactment === SETTLED && !hasListeners()) this.#idle.check()
    else if (!(enactment instanceof Promise)) this.enact(delivery, decision, enactment)
    else this.#handOff.settle(delivery, decision, enactment, this.#idle.check)
  }

  /** Applies a decision now, or later when the flood guard slows it. */
  carryOut(delivery: D, decision: Decision): void {
    if (decision.kind === 'deadLetter' && this.#slowed.hold(delivery, decision)) return
    this.enact(delivery, splitDelay(decision, this.#deps.transport.capabilities))
  }

  enact(delivery: D, decision: Decision, begun?: Awaitable<Enactment>): void {
    this.#handOff.enact(delivery, decision, this.#idle.check, begun)
  }

  returnAll(all: readonly PendingDelivery<D>[], reason: Pause['reason']): void {
    const { clock } = this.#deps
    for (const pending of all) this.returnToSource(pending, pauseDecision(reason, clock.now()))
  }

  /**
   * Returns waiting deliveries, because none may run. In lane order those with failures that only this
   * process has counted stay, because a return would discard the failures.
   */
  returnWaiting(waiting: PendingDelivery<D>[], capacity: ReturnRule): void {
    const staysHere = (one: PendingDelivery<D>) =>
      this.#deps.policy.order === 'lane' && hasOwnFailures(one) && !capacity.mustReturnAll
    const kept = waiting.filter(staysHere)
    const returned = waiting.filter((one) => !staysHere(one))
    waiting.splice(0, waiting.length, ...kept)
    this.returnAll(returned, capacity.returnReason())
  }

  returnToSource(pending: PendingDelivery<D>, pause: Pause): void {
    const { policy, clock, dependency, transport } = this.#deps
    if (pause.reason === 'dependency_unhealthy') dependency.countRejection()
    const returned = returnDecision(pending, pause, policy.order, clock.now())
    this.enact(pending.delivery, splitDelay(returned, transport.capabilities))
  }
}
