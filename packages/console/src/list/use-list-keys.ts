import { useState } from 'react'
import { type KeyMap, useKeys } from '../keys.ts'

export interface ListKeysOptions {
  /** Ids of the rows, in their order. */
  readonly ids: readonly string[]
  readonly selected: ReadonlySet<string>
  readonly onSelect: (selected: ReadonlySet<string>) => void
  readonly onOpen: (id: string) => void
  /** More keys. `focused` is the row that they act on. */
  readonly keysFor?: (focused: string | undefined) => KeyMap
}

/** Moves through a list, selects and opens, by keyboard. */
export function useListKeys({ ids, selected, onSelect, onOpen, keysFor }: ListKeysOptions) {
  const [focused, setFocused] = useState<string>()
  const [anchor, setAnchor] = useState<string>()
  const at = focused === undefined ? -1 : ids.indexOf(focused)
  const current = at < 0 ? undefined : focused

  const move = (step: number) =>
    setFocused(ids[Math.max(0, Math.min(ids.length - 1, at < 0 ? 0 : at + step))])
  const select = (id: string, isSelected: boolean, withRange = false) => {
    const from = withRange && anchor !== undefined ? ids.indexOf(anchor) : -1
    const range = from < 0 ? [id] : between(ids, from, ids.indexOf(id))
    const next = new Set(selected)
    for (const one of range) {
      if (isSelected) next.add(one)
      else next.delete(one)
    }
    setAnchor(id)
    onSelect(next)
  }
  const selectAll = (isSelected: boolean) => onSelect(new Set(isSelected ? ids : []))

  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(current === undefined
      ? {}
      : {
          Enter: () => onOpen(current),
          x: () => select(current, !selected.has(current)),
          'Shift+x': () => select(current, true, true),
        }),
    'Shift+a': () => selectAll(true),
    ...(selected.size > 0 ? { Escape: () => onSelect(new Set()) } : {}),
    ...keysFor?.(current),
  })
  return { focused: current, select, selectAll }
}

const between = (ids: readonly string[], from: number, to: number) =>
  ids.slice(Math.min(from, to), Math.max(from, to) + 1)
