import type { Candidate } from './harness.ts'

/**
 * Opens all or none. After a failure, no connection may stay open and keep the process alive, and no
 * database may be left behind.
 */
export async function openEach<Entrant>(
  entrants: readonly Entrant[],
  open: (entrant: Entrant) => Promise<Candidate>,
): Promise<Candidate[]> {
  const opened: Candidate[] = []
  try {
    for (const entrant of entrants) opened.push(await open(entrant))
    return opened
  } catch (error) {
    for (const candidate of opened) await candidate.close?.()
    throw error
  }
}
