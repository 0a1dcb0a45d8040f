import { setTimeout as after } from 'node:timers/promises'
import { until as untilFound } from '@redrive/testing'

/** 100 ms: finer than any value measured in seconds. */
const EVERY_MS = 100

export interface Deadline {
  readonly withinMs: number
  /** Time between two checks; default 100 ms. */
  readonly everyMs?: number
}

/** Checks repeatedly until the condition is true; returns false after the time limit. */
export async function becomesTrue(
  isTrue: () => boolean | Promise<boolean>,
  { withinMs, everyMs = EVERY_MS }: Deadline,
): Promise<boolean> {
  const endsAt = performance.now() + withinMs
  for (;;) {
    if (await isTrue()) return true
    if (performance.now() >= endsAt) return false
    await after(everyMs)
  }
}

/** Waits like `becomesTrue`, but throws after the time limit. */
export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  deadline: Deadline,
): Promise<void> {
  const { withinMs, everyMs = EVERY_MS } = deadline
  let failure: { readonly error: unknown } | undefined
  // A condition throws when it cannot become true any more, such as when a process ended too early.
  const isOver = async () => {
    try {
      return await isTrue()
    } catch (error) {
      failure = { error }
      return true
    }
  }
  await untilFound(what, isOver, { timeout: withinMs, interval: everyMs })
  if (failure !== undefined) throw failure.error
}

/**
 * Repeats an idempotent operation until it succeeds. Throws its error after the time limit, or when
 * a repetition cannot help.
 */
export async function repeated<T>(
  operation: () => Promise<T>,
  { withinMs, everyMs = EVERY_MS }: Deadline,
  canHelp: (error: unknown) => boolean = () => true,
): Promise<T> {
  const endsAt = performance.now() + withinMs
  for (;;) {
    try {
      return await operation()
    } catch (error) {
      if (!canHelp(error) || performance.now() >= endsAt) throw error
    }
    await after(everyMs)
  }
}

/**
 * Waits for the duration of a fault, which is part of the scenario. Do not use it to wait for a
 * condition.
 */
export async function lasting(ms: number): Promise<void> {
  await after(ms)
}
