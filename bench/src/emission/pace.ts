/** Number of events in one request. */
export const BATCH = 100
/** Concurrent requests: enough to keep a server with one core busy. */
export const REQUESTS = 4
/** 10 batches in flight: enough that no request waits for events, few enough to be a limit. */
const WINDOW = 10

/**
 * Emits without waiting for each event. After every batch it waits for the one ten batches before,
 * as a service with limited concurrency does.
 */
export async function paced(
  count: number,
  emitOne: (number: number) => Promise<unknown>,
): Promise<void> {
  const lasts: Promise<unknown>[] = []
  for (let number = 0; number < count; ) {
    let last: Promise<unknown> = Promise.resolve()
    for (const end = Math.min(number + BATCH, count); number < end; number += 1) {
      last = emitOne(number)
    }
    lasts.push(last)
    if (lasts.length > WINDOW) await lasts.shift()
  }
  await Promise.all(lasts)
}
