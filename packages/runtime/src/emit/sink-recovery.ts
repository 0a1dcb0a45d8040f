import { RedriveError } from '@redrive/core'
import type { Clock } from '../clock.ts'
import { publish } from '../events.ts'
import type {
  DeadLetterStore,
  ReplayQuery,
  ReplayResult,
  StoredDeadLetter,
  StoreFilter,
} from '../ports/dead-letter-store.ts'
import type { ResolvedEmitter } from './options.ts'
import type { SinkResult } from './result.ts'
import type { SinkQueue } from './sink-queue.ts'

export interface SinkRecoveryOptions {
  readonly sinkQueues: readonly SinkQueue[]
  readonly store: DeadLetterStore
  readonly autoReplay: ResolvedEmitter['autoReplay']
  readonly cleanup: ResolvedEmitter['cleanup']
  readonly clock: Clock
  readonly maxWaitMs: number
}

/** 1 s between two health checks of a sink, even when its breaker would allow the next one earlier. */
const CHECK_EVERY_MS = 1_000
/** 10 concurrent replays: enough to fill a batch and to use the budget while a sink is slow. */
const REPLAY_CONCURRENCY = 10

/** Recovers automatically: checks unhealthy sinks, replays the events they missed, and removes old ones. */
export class SinkRecovery {
  readonly #options: SinkRecoveryOptions
  readonly #cancels = new Map<unknown, () => void>()
  readonly #replaying = new Map<SinkQueue, Promise<void>>()
  /** Time of the last replay of each sink; the next replay waits for it. */
  readonly #lastReplays = new Map<SinkQueue, Promise<number>>()
  readonly #unsubscribe: (() => void)[] = []
  #isStopped = false

  constructor(options: SinkRecoveryOptions) {
    this.#options = options
  }

  start(): void {
    const { sinkQueues, autoReplay, cleanup } = this.#options
    for (const sinkQueue of sinkQueues) {
      this.#unsubscribe.push(sinkQueue.dependency.onChange(() => this.#onBreakerChange(sinkQueue)))
    }
    if (autoReplay !== undefined) {
      this.#repeat(autoReplay.cron, () => {
        for (const sinkQueue of sinkQueues) this.#replay(sinkQueue)
      })
    }
    if (cleanup !== undefined) this.#repeat(cleanup.cron, () => void this.#cleanUp())
  }

  #repeat(cron: { nextRun(from: Date): Date | null }, work: () => void): void {
    const now = this.#options.clock.now()
    const next = cron.nextRun(new Date(now))
    if (next === null) return
    this.#after(cron, next.getTime() - now, () => {
      this.#repeat(cron, work)
      work()
    })
  }

  #after(what: unknown, delayMs: number, work: () => void): void {
    if (this.#isStopped || this.#cancels.has(what)) return
    const run = () => {
      this.#cancels.delete(what)
      work()
    }
    // A schedule or a health check alone does not keep the process alive.
    const cancel = this.#options.clock.after(delayMs, run, { isBackground: true })
    this.#cancels.set(what, cancel)
  }

  // ---- health -----------------------------------------------------------------------------------

  #onBreakerChange(sinkQueue: SinkQueue): void {
    switch (sinkQueue.guards.phase()) {
      case 'open':
      case 'halfOpen':
        return this.#checkAt(sinkQueue)
      case 'closed':
        return this.#replay(sinkQueue)
      case 'isolated':
    }
  }

  #checkAt(sinkQueue: SinkQueue): void {
    const untilMs = (sinkQueue.guards.probeAt ?? 0) - this.#options.clock.now()
    this.#after(sinkQueue, Math.max(CHECK_EVERY_MS, untilMs), () => void this.#check(sinkQueue))
  }

  async #check(sinkQueue: SinkQueue): Promise<void> {
    if (sinkQueue.hasHealthCheck) await sinkQueue.checkHealth()
    else await this.#probe(sinkQueue)
    if (sinkQueue.guards.phase() !== 'closed') this.#checkAt(sinkQueue)
  }

  /** Sends one stored event as the probe. Without automatic replay, the next new event is the probe. */
  async #probe(sinkQueue: SinkQueue): Promise<void> {
    if (this.#options.autoReplay === undefined || sinkQueue.guards.phase() !== 'halfOpen') return
    try {
      await this.replayBatch({ filter: this.#replayable(sinkQueue), limit: 1 })
    } catch (error) {
      this.#reportFailure('autoReplay', error)
    }
  }

  // ---- replay -----------------------------------------------------------------------------------

  #replay(sinkQueue: SinkQueue): void {
    if (this.#options.autoReplay === undefined || this.#isStopped) return
    if (this.#replaying.has(sinkQueue) || sinkQueue.guards.phase() !== 'closed') return
    const run = this.#replayAll(sinkQueue).finally(() => this.#replaying.delete(sinkQueue))
    this.#replaying.set(sinkQueue, run)
  }

  /** Replays batch after batch, until none is left or one fails. After a failure it waits for the next schedule. */
  async #replayAll(sinkQueue: SinkQueue): Promise<void> {
    const { autoReplay, clock } = this.#options
    if (autoReplay === undefined) return
    const { batch } = autoReplay
    let [replayed, failed] = [0, 0]
    try {
      for (let isMore = true; isMore && !this.#isStopped; ) {
        const filter = this.#replayable(sinkQueue)
        const done = await this.replayBatch({ filter, limit: batch })
        replayed += done.replayed
        failed += done.failed
        isMore = done.failed === 0 && done.replayed > 0
      }
    } catch (error) {
      this.#reportFailure('autoReplay', error)
    }
    if (replayed + failed === 0) return
    publish({ type: 'replayed', at: clock.now(), source: sinkQueue.name, replayed, failed })
  }

  /** Returns the filter of the dead letters that are replayed automatically. */
  #replayable({ name }: SinkQueue): StoreFilter {
    const { autoReplay, clock } = this.#options
    const savedAfter = clock.now() - (autoReplay?.maxAgeMs ?? 0)
    return { sink: name, class: 'transient', savedAfter }
  }

  replay(id: string): Promise<boolean> {
    return this.#options.store.replay(id, (deadLetter) => this.#send(deadLetter))
  }

  replayBatch(query: ReplayQuery): Promise<ReplayResult> {
    return this.#options.store.replayBatch(
      { concurrency: REPLAY_CONCURRENCY, ...query },
      (deadLetter) => this.#send(deadLetter),
    )
  }

  /** Sends to its sink, as breaker and budget allow; rejects when it was not delivered. */
  async #send(deadLetter: StoredDeadLetter): Promise<void> {
    const { event, job, sink, reason, cycle, replayId } = deadLetter
    const sinkQueue = this.#options.sinkQueues.find(({ name }) => name === sink)
    if (sinkQueue === undefined) {
      throw new RedriveError(
        'REPLAY_FAILED',
        `This emitter has no sink "${sink}". Replay the dead letter with the emitter that has it.`,
      )
    }
    await this.#waitForTurn(sinkQueue)
    const { clock, maxWaitMs } = this.#options
    const deadline = clock.now() + maxWaitMs
    const result = await new Promise<SinkResult>((onEnd) =>
      sinkQueue.add({
        event,
        job,
        // A requested replay that fails gets its failure, so that the control plane reads it again.
        ...(reason === 'replay_requested'
          ? {
              stored: 'pending',
              requested: { ...(replayId !== undefined && { replayId }), cycleNumber: cycle.number },
            }
          : { stored: 'replay' }),
        deadline,
        onEnd,
      }),
    )
    if (result.kind === 'delivered' || result.kind === 'dropped') return
    throw new RedriveError(
      'REPLAY_FAILED',
      `Sink "${sinkQueue.name}" did not accept event "${event.id}". The event stays in the store.`,
    )
  }

  /** Runs one replay after the other, when the rate and the budget allow it. */
  #waitForTurn(sinkQueue: SinkQueue): Promise<void> {
    const before = this.#lastReplays.get(sinkQueue) ?? Promise.resolve(0)
    const turn = before.then((lastAt) => this.#waitForBudget(sinkQueue, lastAt))
    // A refused replay does not delay the next.
    const next = turn.catch(() => before)
    this.#lastReplays.set(sinkQueue, next)
    return turn.then(() => undefined)
  }

  async #waitForBudget(sinkQueue: SinkQueue, lastAt: number): Promise<number> {
    let triedAt = lastAt
    do {
      this.#refuseWhileOpen(sinkQueue)
      await this.#at(triedAt + sinkQueue.guards.replayEveryMs)
      this.#refuseWhileOpen(sinkQueue)
      triedAt = this.#options.clock.now()
    } while (!sinkQueue.guards.takeReplayToken())
    return triedAt
  }

  #refuseWhileOpen(sinkQueue: SinkQueue): void {
    const phase = sinkQueue.guards.phase()
    if (phase !== 'open' && phase !== 'isolated' && !this.#isStopped) return
    const why = this.#isStopped ? 'the emitter is closed' : `its breaker is ${phase}`
    throw new RedriveError(
      'REPLAY_FAILED',
      `Sink "${sinkQueue.name}" accepts no replays now: ${why}. The event stays in the store. Replay it later.`,
    )
  }

  #at(time: number): Promise<void> {
    const delayMs = time - this.#options.clock.now()
    if (delayMs <= 0) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(delayMs, () => {
        this.#cancels.delete(resolve)
        resolve()
      })
      // A caller that waits during a stop gets the error.
      this.#cancels.set(resolve, () => {
        cancel()
        resolve()
      })
    })
  }

  async #cleanUp(): Promise<void> {
    const { store, clock, cleanup } = this.#options
    if (cleanup === undefined) return
    try {
      const count = await store.cleanup({ savedBefore: clock.now() - cleanup.retentionMs })
      publish({ type: 'cleaned_up', at: clock.now(), source: 'store', count })
    } catch (error) {
      this.#reportFailure('cleanup', error)
    }
  }

  #reportFailure(where: string, error: unknown): void {
    const at = this.#options.clock.now()
    publish({ type: 'user_code_failed', at, source: 'store', where, error })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    for (const cancel of this.#cancels.values()) cancel()
    await Promise.all(this.#replaying.values())
  }
}
