/** A value or a promise of it. Code that runs for every message avoids unnecessary promises. */
export type Awaitable<T> = T | Promise<T>
