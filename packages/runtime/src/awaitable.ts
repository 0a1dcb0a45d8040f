/** A value or a promise of it. Code that runs for every message avoids unnecessary promises. */
export type Awaitable<T> = T | Promise<T>

/** Returns the result as a promise. A promise with its own `then` may throw or call back twice; a new one does not. */
export function promiseOf(result: unknown): Promise<unknown> {
  if (!(result instanceof Promise)) return Promise.resolve(result)
  if (result.then === Promise.prototype.then) return result
  return new Promise((resolve) => resolve(result))
}
