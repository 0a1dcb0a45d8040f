import { AsyncLocalStorage } from 'node:async_hooks'

/** What the work that is going on says about emitting. */
export interface Scope {
  /** False: nothing that an emission does may fail or hold up the work. */
  readonly isFailing: boolean
  /** The job that the work is; what it emits is stored and counted under its name. */
  readonly job: string | undefined
}

export interface ScopeOptions {
  /** Name of the job; inherited from the scope around it when absent. */
  readonly job?: string
}

const scopes = new AsyncLocalStorage<Scope>()

/** Outside of every scope whoever emits wants to know. */
const NO_SCOPE: Scope = Object.freeze({ isFailing: true, job: undefined })

export const currentScope = (): Scope => scopes.getStore() ?? NO_SCOPE

const inScope = <T>(isFailing: boolean, work: () => T, { job }: ScopeOptions): T =>
  scopes.run({ isFailing, job: job ?? currentScope().job }, work)

/**
 * In here, and in everything that is awaited in here, `emit` neither rejects nor waits: what a sink
 * does not take is stored and counted. Scopes nest; the innermost counts.
 */
export const nonFailing = <T>(work: () => T, options: ScopeOptions = {}): T =>
  inScope(false, work, options)

/** In here `emit` tells what became of the event, and rejects when it would be lost: for what must be known. */
export const failing = <T>(work: () => T, options: ScopeOptions = {}): T =>
  inScope(true, work, options)

/**
 * A job function whose emissions cannot fail it.
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
 * The same for workers that are given jobs with a name, as BullMQ's are.
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
