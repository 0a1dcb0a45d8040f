/** As many as make one request. */
export const BATCH = 100
/** Requests at once: as many as keep a server busy that has one core. */
export const REQUESTS = 4
/** 10 batches on their way: enough that no request waits for events, few enough to be a bound. */
const WINDOW = 10

/**
 * Emits without waiting for each: after every batch it waits for the one that is ten batches back, as a
 * service does that has bounded what it works on.
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
