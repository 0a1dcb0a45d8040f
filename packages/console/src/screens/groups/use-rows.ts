import type { Group } from '@redrive/api'
import { useState } from 'react'

interface ShownRows {
  readonly key: string
  readonly ids: readonly string[]
}

/**
 * Keeps the order of rows while data updates, so that no row moves under the pointer. New groups are counted, and shown
 * when the user asks for them. Groups that no longer match are removed.
 */
export function useStableRows(groups: readonly Group[], key: string) {
  const [shown, setShown] = useState<ShownRows>({ key: '', ids: [] })
  const isNewList = shown.key !== key && groups.length > 0
  const ids = isNewList ? groups.map(({ id }) => id) : shown.ids
  if (isNewList) setShown({ key, ids })
  const byId = new Map(groups.map((group) => [group.id, group]))
  const rows = ids.flatMap((id) => byId.get(id) ?? [])
  const known = new Set(ids)
  const added = groups.filter(({ id }) => !known.has(id)).length
  const show = () => setShown({ key, ids: groups.map(({ id }) => id) })
  return { rows, added, show }
}
