/** 60 s: what does not happen by then does not happen. */
const DEADLINE_MS = 60_000
const LOOK_MS = 50

/** Looks again until there is an answer. */
export async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const endsAt = performance.now() + DEADLINE_MS
  for (;;) {
    const seen = await look()
    if (seen !== undefined) return seen
    if (performance.now() > endsAt) throw new Error(`It did not happen: ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
