import { fileStore } from '@redrive/file-store'

/** Returns the ids of all events in the store of a directory, as a process that opens it now reads them. */
export async function storedIds(directory: string): Promise<readonly string[]> {
  const store = fileStore({ directory })
  const ids: string[] = []
  let cursor: string | undefined
  do {
    const page = await store.list({ limit: 1_000, ...(cursor !== undefined && { cursor }) })
    ids.push(...page.deadLetters.map(({ event }) => event.id))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  await store.close()
  return ids
}
