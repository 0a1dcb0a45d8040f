import type { OutboundEvent } from '@redrive/runtime'
import { fileStore } from '@redrive/file-store'

/** Returns all events in the store of a directory, as a process that opens it now reads them. */
export async function storedEvents(directory: string): Promise<readonly OutboundEvent[]> {
  const store = fileStore({ directory })
  const events: OutboundEvent[] = []
  let cursor: string | undefined
  do {
    const page = await store.list({ limit: 1_000, ...(cursor !== undefined && { cursor }) })
    events.push(...page.deadLetters.map(({ event }) => event))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  await store.close()
  return events
}

export const storedIds = async (directory: string): Promise<readonly string[]> =>
  (await storedEvents(directory)).map(({ id }) => id)
