/** Runs work with the same key one after the other, and work with different keys at the same time. */
export function createTurns(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const latest = new Map<string, Promise<unknown>>()
  return async (key, work) => {
    // The error of earlier work belongs to its own caller.
    const run = () => work()
    const mine = (latest.get(key) ?? Promise.resolve()).then(run, run)
    latest.set(key, mine)
    try {
      return await mine
    } finally {
      if (latest.get(key) === mine) latest.delete(key)
    }
  }
}
