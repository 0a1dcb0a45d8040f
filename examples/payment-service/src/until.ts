/** 30 s: what does not happen by then does not happen. */
const DEADLINE_MS = 30_000
const LOOK_MS = 20

/** Looks again until it holds. */
export async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + DEADLINE_MS
  while (!(await isTrue())) {
    if (performance.now() > endsAt) throw new Error(`It did not happen: ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
