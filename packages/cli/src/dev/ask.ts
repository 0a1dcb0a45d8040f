import type { Io } from '../io.ts'

/** Prompts the user. Returns undefined after Ctrl-C or a signal, which the prompt itself does not see. */
export async function askUntilAborted(io: Io, question: string): Promise<boolean | undefined> {
  const aborted = new Promise<undefined>((resolve) => {
    if (io.signal.aborted) resolve(undefined)
    io.signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  return Promise.race([io.confirm(question), aborted])
}
