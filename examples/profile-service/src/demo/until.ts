import { setTimeout as pause } from 'node:timers/promises'

/** 20 s: several times what the slowest step takes on a busy machine. */
const PATIENCE_MS = 20_000
const LOOK_MS = 50

type Falsy = undefined | false | ''

/** Asks again and again until the answer is truthy, and gives up after a while. */
export async function until<T>(
  what: string,
  ask: () => T | Falsy | Promise<T | Falsy>,
): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false && answer !== '') return answer as T
    if (performance.now() > deadline) throw new Error(`Waited in vain until ${what}.`)
    await pause(LOOK_MS)
  }
}
