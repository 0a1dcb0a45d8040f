// One candidate that sends to the shared server. The server gets the expected count before a sample
// and returns its count after it.
import type { Candidate } from '../harness.ts'
import { LokiProcess } from './loki.ts'

/** A program that emits events. */
export interface Contender {
  /** Emits `count` events. They may arrive after it resolves. */
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

/** Opens all or none. After a failure, nothing may stay open and keep the process alive. */
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

/**
 * Opens a server process for each candidate, so that no candidate waits for a late request of
 * another one.
 */
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
