/** Caches a result for `keepMs`; concurrent callers share one request. A failure is not cached. */
export function cached<T>(keepMs: number, load: () => Promise<T>): () => Promise<T> {
  let last: { readonly result: Promise<T>; readonly until: number } | undefined
  return () => {
    if (last !== undefined && performance.now() < last.until) return last.result
    const entry = { result: load(), until: performance.now() + keepMs }
    last = entry
    entry.result.catch(() => {
      if (last === entry) last = undefined
    })
    return entry.result
  }
}
