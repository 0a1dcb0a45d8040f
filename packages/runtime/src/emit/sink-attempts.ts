import { type Policy, RedriveError } from '@redrive/core'
import { LATE_SHARE } from '@redrive/core/internal'
import type { Clock } from '../clock.ts'
import type { GuardState } from '../guard-state.ts'
import type { Sink } from '../ports/sink.ts'
import type { Batch } from './batches.ts'
import { callSink } from './sink-call.ts'

interface SinkAttemptsOptions {
  readonly name: string
  readonly sink: Sink
  readonly policy: Policy
  readonly clock: Clock
}

/** The attempts of one sink that run now, its health check, and what the guards learn from successes. */
export class SinkAttempts {
  readonly #options: SinkAttemptsOptions
  readonly #guardState: GuardState
  readonly #running = new Map<Batch, AbortController>()
  /** The health check in progress. */
  #checking: AbortController | undefined

  constructor(options: SinkAttemptsOptions, guardState: GuardState) {
    this.#options = options
    this.#guardState = guardState
  }

  get count(): number {
    return this.#running.size
  }

  /** Runs one attempt. It counts until `end`. */
  run(batch: Batch, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const controller = new AbortController()
    this.#running.set(batch, controller)
    return this.#call(controller, work)
  }

  end(batch: Batch): void {
    this.#running.delete(batch)
  }

  /** Aborts the attempts whose batch matches. */
  abort(reason: RedriveError, matches: (batch: Batch) => boolean): void {
    for (const [batch, controller] of this.#running) {
      if (matches(batch)) controller.abort(reason)
    }
  }

  learnSuccess(startedAt: number): void {
    const { clock, policy } = this.#options
    const now = clock.now()
    this.#guardState.count(now)
    this.#guardState.flushSuccesses({
      late: now - startedAt >= policy.timeoutMs * LATE_SHARE,
      saturated: this.#running.size >= this.#guardState.allowed(now),
      startedAt,
      inFlight: Math.max(1, this.#running.size),
    })
  }

  /** Runs the health check of the sink, if it has one. */
  async checkHealth(): Promise<void> {
    const { name, sink, clock } = this.#options
    const check = sink.healthCheck?.bind(sink)
    if (check === undefined) return
    const controller = new AbortController()
    const startedAt = clock.now()
    this.#checking = controller
    try {
      await this.#call(controller, (signal) => check({ signal }))
      this.learnSuccess(startedAt)
    } catch (cause) {
      // Every failure of a health check is a failure of the sink.
      const error = new RedriveError(
        'UNREACHABLE',
        `The health check of sink "${name}" failed. Its breaker opens again, and Redrive repeats the check.`,
        { cause },
      )
      this.#guardState.recordFailedCheck(error, { startedAt, inFlight: 1 })
    }
    this.#checking = undefined
  }

  /** Aborts all attempts and the health check. */
  stop(): void {
    const reason = new RedriveError(
      'STOPPING',
      `The emitter was closed before sink "${this.#options.name}" accepted the event.`,
    )
    this.abort(reason, () => true)
    this.#checking?.abort(reason)
  }

  #call(controller: AbortController, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { name, clock, policy } = this.#options
    return callSink({ name, clock, timeoutMs: policy.timeoutMs }, controller, () =>
      work(controller.signal),
    )
  }
}
