import { AsyncLocalStorage } from 'node:async_hooks'

/** The settings of `emit` for the current work. */
export interface Scope {
  /** False: an emission must not fail or delay the work. */
  readonly isFailing: boolean
  /** Name of the current job. Its events are stored and counted under this name. */
  readonly job: string | undefined
}

export interface ScopeOptions {
  /** Name of the job. Default: the name of the outer scope. */
  readonly job?: string
}

const scopes = new AsyncLocalStorage<Scope>()

/** The default outside of every scope: `emit` reports failures. */
const NO_SCOPE: Scope = Object.freeze({ isFailing: true, job: undefined })

export const currentScope = (): Scope => scopes.getStore() ?? NO_SCOPE

const inScope = <T>(isFailing: boolean, work: () => T, { job }: ScopeOptions): T =>
  scopes.run({ isFailing, job: job ?? currentScope().job }, work)

/**
 * Runs `work` in a scope where `emit` neither rejects nor waits for sinks. It waits only while thousands of events
 * wait for the store. Undelivered events are stored and counted. The scope includes every function that `work` calls, also asynchronously. Scopes nest; the innermost one applies.
 */
export const nonFailing = <T>(work: () => T, options: ScopeOptions = {}): T =>
  inScope(false, work, options)

/** Runs `work` in a scope where `emit` returns the result of the event, and rejects when the event would be lost. */
export const failing = <T>(work: () => T, options: ScopeOptions = {}): T =>
  inScope(true, work, options)

/**
 * Wraps a job function so that its emissions cannot fail it.
 *
 * ```ts
 * const nightly = nonFailingJob('nightly-report', async () => { … })
 * ```
 */
export function nonFailingJob<Args extends readonly unknown[], T>(
  job: string,
  work: (...args: Args) => T,
): (...args: Args) => T {
  return (...args) => nonFailing(() => work(...args), { job })
}

/**
 * Wraps the processor of a worker whose jobs have a name, such as BullMQ's.
 *
 * ```ts
 * new Worker('orders', nonFailingProcessor(async (job) => { … }), { connection })
 * ```
 */
export function nonFailingProcessor<
  Job extends { readonly name: string },
  Rest extends readonly unknown[],
  T,
>(process: (job: Job, ...rest: Rest) => T): (job: Job, ...rest: Rest) => T {
  return (job, ...rest) => nonFailing(() => process(job, ...rest), { job: job.name })
}
