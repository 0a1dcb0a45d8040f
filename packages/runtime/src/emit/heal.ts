import { RedriveError } from '@redrive/core'
import type { Clock } from '../clock.ts'
import { publish } from '../events.ts'
import type { DeadLetterStore, ReplayAnswer, ReplayQuery, StoredDeadLetter } from '../ports.ts'
import type { ResolvedEmitter } from './options.ts'
import type { SinkResult } from './result.ts'
import type { Outlet } from './outlet.ts'

export interface HealerParts {
  readonly outlets: readonly Outlet[]
  readonly store: DeadLetterStore
  readonly autoReplay: ResolvedEmitter['autoReplay']
  readonly cleanup: ResolvedEmitter['cleanup']
  readonly clock: Clock
}

/** 1 s between two health checks of a sink, however soon its breaker would take the next. */
const CHECK_EVERY_MS = 1_000
/** 10 at once: enough to fill a batch and to use the budget while a sink takes its time. */
const REPLAYS_AT_ONCE = 10

/** What heals by itself: unhealthy sinks are asked how they are, what they missed is replayed, what is old goes. */
export class Healer {
  readonly #parts: HealerParts
  readonly #cancels = new Map<unknown, () => void>()
  readonly #replaying = new Map<Outlet, Promise<void>>()
  /** When the last replay of a sink went: the next waits for it. */
  readonly #turns = new Map<Outlet, Promise<number>>()
  readonly #unsubscribe: (() => void)[] = []
  #isStopped = false

  constructor(parts: HealerParts) {
    this.#parts = parts
  }

  start(): void {
    const { outlets, autoReplay, cleanup } = this.#parts
    for (const outlet of outlets) {
      this.#unsubscribe.push(outlet.dependency.onChange(() => this.#noticed(outlet)))
    }
    if (autoReplay !== undefined) {
      this.#repeat(autoReplay.cron, () => {
        for (const outlet of outlets) this.#replay(outlet)
      })
    }
    if (cleanup !== undefined) this.#repeat(cleanup.cron, () => void this.#cleanUp())
  }

  #repeat(cron: { nextRun(from: Date): Date | null }, work: () => void): void {
    const now = this.#parts.clock.now()
    const next = cron.nextRun(new Date(now))
    if (next === null) return
    this.#after(cron, next.getTime() - now, () => {
      this.#repeat(cron, work)
      work()
    })
  }

  #after(what: unknown, delayMs: number, work: () => void): void {
    if (this.#isStopped || this.#cancels.has(what)) return
    const cancel = this.#parts.clock.after(delayMs, () => {
      this.#cancels.delete(what)
      work()
    })
    this.#cancels.set(what, cancel)
  }

  // ---- health -----------------------------------------------------------------------------------

  #noticed(outlet: Outlet): void {
    switch (outlet.phase()) {
      case 'open':
      case 'halfOpen':
        return this.#checkAt(outlet)
      case 'closed':
        return this.#replay(outlet)
      case 'isolated':
    }
  }

  #checkAt(outlet: Outlet): void {
    const untilMs = (outlet.probeAt ?? 0) - this.#parts.clock.now()
    this.#after(outlet, Math.max(CHECK_EVERY_MS, untilMs), () => void this.#check(outlet))
  }

  async #check(outlet: Outlet): Promise<void> {
    await outlet.checkHealth()
    if (outlet.phase() !== 'closed') this.#checkAt(outlet)
  }

  // ---- replay -----------------------------------------------------------------------------------

  #replay(outlet: Outlet): void {
    if (this.#parts.autoReplay === undefined || this.#isStopped) return
    if (this.#replaying.has(outlet) || outlet.phase() !== 'closed') return
    const run = this.#replayAll(outlet).finally(() => this.#replaying.delete(outlet))
    this.#replaying.set(outlet, run)
  }

  /** Batch after batch, until nothing is left or something fails: then it waits for the next time. */
  async #replayAll(outlet: Outlet): Promise<void> {
    const { autoReplay, clock } = this.#parts
    if (autoReplay === undefined) return
    const { batch, maxAgeMs } = autoReplay
    let [replayed, failed] = [0, 0]
    try {
      for (let isMore = true; isMore && !this.#isStopped; ) {
        const filter = {
          sink: outlet.name,
          class: 'transient',
          savedAfter: clock.now() - maxAgeMs,
        } as const
        const done = await this.replayBatch({ filter, most: batch })
        replayed += done.replayed
        failed += done.failed
        isMore = done.failed === 0 && done.replayed > 0
      }
    } catch (error) {
      this.#trouble('autoReplay', error)
    }
    if (replayed + failed === 0) return
    publish({ type: 'replayed', at: clock.now(), source: outlet.name, replayed, failed })
  }

  replay(id: string): Promise<boolean> {
    return this.#parts.store.replay(id, (deadLetter) => this.#send(deadLetter))
  }

  replayBatch(query: ReplayQuery): Promise<ReplayAnswer> {
    return this.#parts.store.replayBatch({ atOnce: REPLAYS_AT_ONCE, ...query }, (deadLetter) =>
      this.#send(deadLetter),
    )
  }

  /** To its sink, as breaker and budget allow; rejects when it did not arrive. */
  async #send({ event, job, sink }: StoredDeadLetter): Promise<void> {
    const outlet = this.#parts.outlets.find(({ name }) => name === sink)
    if (outlet === undefined) {
      throw new RedriveError(
        'REPLAY_FAILED',
        `This emitter has no sink ${sink}: replay where it is.`,
      )
    }
    await this.#turn(outlet)
    const result = await new Promise<SinkResult>((onEnd) =>
      outlet.add({ event, job, isReplay: true, onEnd }),
    )
    if (result.kind === 'delivered') return
    throw new RedriveError(
      'REPLAY_FAILED',
      `${outlet.name} did not take the event ${event.id}; it stays in the store.`,
    )
  }

  /** One replay after the other, when the rate and the budget allow it. */
  #turn(outlet: Outlet): Promise<void> {
    const before = this.#turns.get(outlet) ?? Promise.resolve(0)
    const turn = before.then((lastAt) => this.#granted(outlet, lastAt))
    // One that was refused takes no time from the next.
    const next = turn.catch(() => before)
    this.#turns.set(outlet, next)
    return turn.then(() => undefined)
  }

  async #granted(outlet: Outlet, lastAt: number): Promise<number> {
    let askedAt = lastAt
    do {
      this.#refuseWhileOpen(outlet)
      await this.#at(askedAt + outlet.replayEveryMs)
      this.#refuseWhileOpen(outlet)
      askedAt = this.#parts.clock.now()
    } while (!outlet.payForReplay())
    return askedAt
  }

  #refuseWhileOpen(outlet: Outlet): void {
    const phase = outlet.phase()
    if (phase !== 'open' && phase !== 'isolated' && !this.#isStopped) return
    const why = this.#isStopped ? 'the emitter is closed' : `its breaker is ${phase}`
    throw new RedriveError('REPLAY_FAILED', `${outlet.name} takes no replays now: ${why}.`)
  }

  #at(moment: number): Promise<void> {
    const delayMs = moment - this.#parts.clock.now()
    if (delayMs <= 0) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.after(delayMs, () => {
        this.#cancels.delete(resolve)
        resolve()
      })
      // Whoever waits when all is stopped is told so.
      this.#cancels.set(resolve, () => {
        cancel()
        resolve()
      })
    })
  }

  async #cleanUp(): Promise<void> {
    const { store, clock, cleanup } = this.#parts
    if (cleanup === undefined) return
    try {
      const count = await store.cleanup({ savedBefore: clock.now() - cleanup.retentionMs })
      publish({ type: 'cleaned_up', at: clock.now(), source: 'store', count })
    } catch (error) {
      this.#trouble('cleanup', error)
    }
  }

  #trouble(where: string, error: unknown): void {
    const at = this.#parts.clock.now()
    publish({ type: 'user_code_failed', at, source: 'store', where, error })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    for (const cancel of this.#cancels.values()) cancel()
    await Promise.all(this.#replaying.values())
  }
}
