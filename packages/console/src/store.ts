import { useSyncExternalStore } from 'react'

/** A value that components can watch. */
export interface Store<T> {
  readonly get: () => T
  readonly set: (value: T) => void
  readonly subscribe: (listener: () => void) => () => void
}

export function createStore<T>(initial: T): Store<T> {
  let current = initial
  const listeners = new Set<() => void>()
  return {
    get: () => current,
    set(value) {
      if (Object.is(value, current)) return
      current = value
      for (const listener of [...listeners]) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** Returns the value of a store, and renders again when it changes. */
export const useStore = <T>(store: Store<T>): T => useSyncExternalStore(store.subscribe, store.get)

/** Creates a store that keeps one of a few values in this browser. */
export function createPreference<T extends string>(
  name: string,
  values: readonly [T, ...T[]],
): Store<T> {
  const store = createStore<T>(values.find((one) => one === stored(name)) ?? values[0])
  return {
    ...store,
    set(value) {
      keep(name, value)
      store.set(value)
    },
  }
}

function stored(name: string): string | undefined {
  try {
    return localStorage.getItem(name) ?? undefined
  } catch {
    // Storage is disabled: the preference lasts as long as the page.
    return undefined
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(name, value)
  } catch {
    // As above.
  }
}
