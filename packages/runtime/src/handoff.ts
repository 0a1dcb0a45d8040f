import type { Decision, Delivery } from '@redrive/core'
import type { Clock } from './clock.ts'
import { hasListeners, publish } from './events.ts'
import type { Awaitable } from './awaitable.ts'
import type { LoopDeps } from './loop-deps.ts'
import type { LostDeliveries } from './lost-deliveries.ts'
import { insteadOfRetry } from './pending-delivery.ts'
import {
  type Enactment,
  isUnfinished,
  SETTLED,
  type Transport,
  type UnfinishedEnactment,
} from './ports/transport.ts'

/** 3 results in a row that are unknown or refused: the broker has a problem, or rejects only this one. */
const STUCK_AFTER = 3
const WAIT_BASE_MS = 100
/** 10 s: a broker follows a new limit only after some time, so the room stays between two bursts of failures. */
const ROOM_MS = 10_000
/** 5 s: the maximum delay until a recovered broker is used again. */
const WAIT_CAP_MS = 5_000

const unknownResult = (error: unknown): Enactment => ({ kind: 'unknown', error })

/** 2: a hand-off takes about as long as the broker needs for two round trips, and a fast handler much less. */
const ROOM_FACTOR = 2

const isCopied = ({ kind }: Decision): boolean =>
  kind === 'retryAt' || kind === 'deadLetter' || kind === 'quarantine'

const isTooLarge = (enactment: UnfinishedEnactment): boolean =>
  enactment.kind === 'refused' && enactment.isTooLarge

type HandOffDeps<D extends Delivery> = Pick<LoopDeps<D>, 'transport' | 'clock' | 'handlerName'>

/**
 * Passes decisions to the transport and repeats each one until it is done. After an unknown or refused
 * result the original stays and the same decision is repeated. Only a retry that is too large for the
 * broker is replaced (`insteadOfRetry`).
 */
export class HandOff<D extends Delivery> {
  readonly #transport: Transport<D>
  readonly #clock: Clock
  readonly #handler: string
  readonly #losses: LostDeliveries<D>
  readonly #onChange: () => void
  readonly #wakes = new Set<() => void>()
  readonly #onIdle: (() => void)[] = []
  #isFailing = false
  #isAbandoned = false
  /** Deliveries that are being returned. Until there is a result, the broker may have them back already. */
  readonly returning: Set<D> = new Set()
  pending = 0
  /** Copies that the broker has not confirmed yet. */
  #copies = 0
  #roomUntil = 0
  /** Hand-offs that were unknown or refused several times in a row. */
  stuck = 0
  /** Error of the last hand-off that got stuck. */
  lastProblem: unknown

  constructor(deps: HandOffDeps<D>, losses: LostDeliveries<D>, onChange: () => void) {
    this.#transport = deps.transport
    this.#clock = deps.clock
    this.#handler = deps.handlerName
    this.#losses = losses
    this.#onChange = onChange
  }

  /** True from the first stuck hand-off until one of them is confirmed. */
  get isFailing(): boolean {
    return this.#isFailing && this.stuck > 0
  }

  /**
   * Handles the common case of a success: the broker confirms, the message is settled and there is no listener. It
   * takes a single step, because this is the hot path. All other cases use the general path.
   */
  settle(delivery: D, decision: Decision, settling: Promise<Enactment>, onDone: () => void): void {
    this.pending += 1
    const onResult = (begun: Enactment) => {
      this.pending -= 1
      if (begun === SETTLED && !this.#isFailing && !hasListeners()) {
        this.#checkIdle()
        onDone()
      } else this.enact(delivery, decision, onDone, begun)
    }
    settling.then(onResult, (error: unknown) => onResult(unknownResult(error)))
  }

  /** Applies a decision and calls `onDone` after it. A result of the first try, which is nearly always one, takes a single step. */
  enact(delivery: D, decision: Decision, onDone: () => void, begun?: Awaitable<Enactment>): void {
    this.pending += 1
    if (decision.kind === 'pause') this.returning.add(delivery)
    const copies = isCopied(decision) ? 1 : 0
    this.#copies += copies
    const end = () => {
      this.#copies -= copies
      this.returning.delete(delivery)
      this.pending -= 1
      this.#checkIdle()
      onDone()
    }
    const onResult = (enactment: Enactment) => {
      if (isUnfinished(enactment)) return void this.#repeat(delivery, decision, enactment).then(end)
      this.#finish(delivery, decision, enactment, 1)
      end()
    }
    // Always later, also without a promise: the caller first saves the state that led to the decision.
    Promise.resolve(begun ?? this.#callTransport(delivery, decision)).then(
      onResult,
      (error: unknown) => onResult(unknownResult(error)),
    )
  }

  /** Repeats a decision whose first try has no result. */
  async #repeat(delivery: D, first: Decision, begun: UnfinishedEnactment): Promise<void> {
    let decision = first
    let enactment: Enactment = begun
    for (let tries = 1; ; tries++) {
      if (!isUnfinished(enactment) || this.#isAbandoned) {
        return this.#finish(delivery, decision, enactment, tries)
      }
      this.#report(delivery, decision, enactment)
      if (tries === STUCK_AFTER) this.#getStuck(delivery, enactment)
      const instead = isTooLarge(enactment) && insteadOfRetry(decision, this.#clock.now())
      if (instead) decision = instead
      else await this.#wait(Math.min(WAIT_CAP_MS, WAIT_BASE_MS * 2 ** (tries - 1)))
      // The transport is closing: it returns unsettled deliveries automatically.
      if (this.#isAbandoned && !instead) return
      enactment = await this.#callTransport(delivery, decision)
    }
  }

  #finish(delivery: D, decision: Decision, enactment: Enactment, tries: number): void {
    this.#report(delivery, decision, enactment)
    // The broker counts the deliveries of a copy from 1 on.
    if (enactment.kind === 'done' && decision.kind !== 'pause') this.#losses.forget(delivery.id)
    this.#settled(tries, enactment)
  }

  /** Calls the transport. An exception leaves the result open, so it counts as unknown. */
  #callTransport(delivery: D, decision: Decision): Awaitable<Enactment> {
    try {
      const result = this.#transport.enact(delivery, decision)
      return result instanceof Promise ? result.catch(unknownResult) : result
    } catch (error) {
      return unknownResult(error)
    }
  }

  #getStuck({ id: deliveryId, source }: D, { kind, error }: UnfinishedEnactment): void {
    this.stuck += 1
    this.#isFailing = true
    this.lastProblem = error
    const [at, isRefused] = [this.#clock.now(), kind === 'refused']
    publish({ type: 'hand_off_stuck', at, source, deliveryId, isRefused, error })
    this.#changed()
  }

  /** Records a confirmed hand-off: the broker works. A hand-off that is still stuck was rejected for itself. */
  #settled(tries: number, { kind }: Enactment): void {
    const wasStuck = tries > STUCK_AFTER
    if (wasStuck) this.stuck -= 1
    const hasRecovered = this.#isFailing && kind === 'done'
    if (hasRecovered) this.#isFailing = false
    if (wasStuck || hasRecovered) this.#changed()
  }

  #changed(): void {
    this.#checkIdle()
    this.#onChange()
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        cancel()
        this.#wakes.delete(wake)
        resolve()
      }
      const cancel = this.#clock.after(delayMs, wake)
      this.#wakes.add(wake)
    })
  }

  /**
   * Returns how many further messages to take while hand-offs wait for the broker. Their messages are unsettled, but no
   * handler runs on them, so others can run. `allowed`: attempts that may run now.
   */
  roomFor(allowed: number): number {
    const now = this.#clock.now()
    if (this.#copies * 2 >= allowed) this.#roomUntil = now + ROOM_MS
    // One at a time: `concurrency` is 1, or the broker confirms nothing.
    const hasRoom = now < this.#roomUntil && allowed > 1
    return this.stuck + (hasRoom ? allowed * ROOM_FACTOR : 0)
  }

  /** Resolves when no hand-off is in progress except stuck ones. */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle.push(resolve)
      this.#checkIdle()
    })
  }

  #checkIdle(): void {
    if (this.pending === this.stuck) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** Ends the repetition because the consumer closes. Unknown deliveries stay with the broker. */
  abandon(): void {
    this.#isAbandoned = true
    for (const wake of [...this.#wakes]) wake()
  }

  #report(delivery: D, decision: Decision, enactment: Enactment): void {
    const { id: deliveryId, source, type: eventType } = delivery
    const [at, handler] = [this.#clock.now(), this.#handler]
    publish({ type: 'enacted', at, source, deliveryId, eventType, handler, decision, enactment })
  }
}
