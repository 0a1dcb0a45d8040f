/**
 * Replaces the modules of Node that the runtime imports, in the worker of the simulator. A simulation needs the clock
 * and random ids. It publishes no event to listeners, has no inbox and emits nothing.
 */
const scope: Pick<typeof globalThis, 'performance' | 'crypto'> = globalThis

export const performance = scope.performance

export const randomUUID = (): string => scope.crypto.randomUUID()

export function createHash(): never {
  throw new Error('A simulation has no inbox, so it needs no hash.')
}

/** A channel without listeners. */
export const channel = () => ({
  hasSubscribers: false,
  publish: () => undefined,
  subscribe: () => undefined,
  unsubscribe: () => true,
})

/** A scope that never has a value. */
export class AsyncLocalStorage {
  getStore(): undefined {
    return undefined
  }
  run<T>(_: unknown, work: () => T): T {
    return work()
  }
}
