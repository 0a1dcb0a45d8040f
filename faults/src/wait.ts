import { setTimeout as after } from 'node:timers/promises'
import { until as untilFound } from '@redrive/testing'

/** 100 ms: finer than anything we measure in seconds. */
const EVERY_MS = 100

export interface Deadline {
  readonly withinMs: number
  /** Time between two looks; default 100 ms. */
  readonly everyMs?: number
}

/** Looks until it is true; false when the time is over before that. */
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

/** As `becomesTrue`, for what the run cannot go on without. */
export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  deadline: Deadline,
): Promise<void> {
  const { withinMs, everyMs = EVERY_MS } = deadline
  let failure: { readonly error: unknown } | undefined
  // A condition throws when it cannot come true any more, such as when a process ended too early.
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

/** The length of a fault is part of the scenario: this is that length, never a way to wait for something. */
export async function lasting(ms: number): Promise<void> {
  await after(ms)
}
