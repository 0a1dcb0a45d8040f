/** Asks at most once in so many milliseconds, and once for all who ask meanwhile. What fails is not kept. */
export function cached<T>(keepMs: number, ask: () => Promise<T>): () => Promise<T> {
  let last: { readonly answer: Promise<T>; readonly until: number } | undefined
  return () => {
    if (last !== undefined && performance.now() < last.until) return last.answer
    const asked = { answer: ask(), until: performance.now() + keepMs }
    last = asked
    asked.answer.catch(() => {
      if (last === asked) last = undefined
    })
    return asked.answer
  }
}
