import { setTimeout as after } from 'node:timers/promises'

export interface Deadline {
  readonly withinMs: number
  /** How often to look. Default 100 ms: finer than anything we measure in seconds. */
  readonly everyMs?: number
}

/** Looks until it is true; false when the time is over before that. */
export async function becomesTrue(
  isTrue: () => boolean | Promise<boolean>,
  { withinMs, everyMs = 100 }: Deadline,
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
  if (await becomesTrue(isTrue, deadline)) return
  throw new Error(`not within ${deadline.withinMs} ms: ${what}`)
}

/** The length of a fault is part of the scenario: this is that length, never a way to wait for something. */
export async function lasting(ms: number): Promise<void> {
  await after(ms)
}
