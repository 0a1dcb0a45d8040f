import { type Clock, systemClock } from './clock.ts'
import type { Awaitable } from './awaitable.ts'

const LATE = Symbol('late')

/**
 * Returns the result of `work`, or that of `onTimeout` when `work` takes longer than `timeoutMs`.
 * Rejects with the error of `work`, or with what `onTimeout` throws. The timer ends with `work`, so it
 * does not keep the process alive.
 *
 * The timeout does not stop `work`. After it, the result and the error of `work` are ignored.
 *
 * ```ts
 * const response = await withTimeout(send(), 5_000, () => {
 *   throw new Error('No response within 5 s.')
 * })
 * ```
 */
export async function withTimeout<T, L>(
  work: Awaitable<T>,
  timeoutMs: number,
  onTimeout: () => L,
  clock: Clock = systemClock,
): Promise<T | Awaited<L>> {
  const { promise: late, resolve } = Promise.withResolvers<typeof LATE>()
  const cancel = clock.after(timeoutMs, () => resolve(LATE))
  try {
    const first = await Promise.race([work, late])
    return first === LATE ? await onTimeout() : first
  } finally {
    cancel()
  }
}
