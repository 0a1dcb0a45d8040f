// One candidate that sends to the server of all: told how many to expect before a sample, asked after it.
import type { Candidate } from '../harness.ts'
import { LokiProcess } from './loki.ts'

/** Whatever emits. */
export interface Contender {
  /** Hands over so many events. They need not have arrived when it resolves. */
  emit(count: number): Promise<void>
  close(): Promise<void> | void
}

export interface Entrant {
  readonly name: string
  readonly open: (url: string) => Promise<Contender> | Contender
  /** How often the server gets each event. Default 1. */
  readonly copies?: number
}

export type Entrants = readonly [Entrant, ...Entrant[]]

/** Opens all or none: a failure halfway must not leave what keeps the process alive. */
export async function openAll(entrants: readonly Entrant[]): Promise<Candidate[]> {
  const opened: Candidate[] = []
  try {
    for (const entrant of entrants) opened.push(await openOne(entrant))
    return opened
  } catch (error) {
    for (const candidate of opened) await candidate.close?.()
    throw error
  }
}

/** The same program for each, but a process of its own: nobody waits for another's late request. */
async function openOne({ name, open, copies = 1 }: Entrant): Promise<Candidate> {
  const loki = await LokiProcess.start()
  const contender = await open(loki.url)
  return {
    name,
    async prepare(count) {
      await loki.expect(count * copies)
      globalThis.gc?.({ type: 'minor' })
    },
    async run(count) {
      const reached = loki.reached()
      await Promise.all([contender.emit(count), reached])
    },
    async verify(count) {
      const counted = await loki.count()
      if (counted === count * copies) return
      throw new Error(`The server has ${counted} entries instead of ${count * copies}`)
    },
    async close() {
      await contender.close()
      loki.close()
    },
  }
}
