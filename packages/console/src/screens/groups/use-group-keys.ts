import type { Group } from '@redrive/api'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useMe } from '../../data/me.ts'
import { can } from '../../data/permissions.ts'
import { useKeys } from '../../keys.ts'
import { groupPath } from '../../paths.ts'
import type { Item } from './sections.ts'

export interface GroupKeysOptions {
  readonly items: readonly Item[]
  readonly selected: ReadonlySet<string>
  readonly onSelect: (selected: ReadonlySet<string>) => void
  readonly onFold: (section: string, isFolded: boolean) => void
}

/** Moves through the list, selects and opens, by keyboard. */
export function useGroupKeys({ items, selected, onSelect, onFold }: GroupKeysOptions) {
  const navigate = useNavigate()
  const me = useMe()
  const [focused, setFocused] = useState<string>()
  const [anchor, setAnchor] = useState<string>()
  const groups = items.flatMap((item) => (item.kind === 'group' ? [item.group] : []))
  const at = groups.findIndex(({ id }) => id === focused)
  const current: Group | undefined = groups[at]
  const section = items.find((item) => item.kind === 'group' && item.group.id === focused)

  const move = (step: number) => {
    const next = groups[Math.max(0, Math.min(groups.length - 1, at + step))]
    setFocused(next?.id)
  }
  const select = (id: string, isSelected: boolean, withRange = false) => {
    const from = withRange ? groups.findIndex((group) => group.id === anchor) : -1
    const to = groups.findIndex((group) => group.id === id)
    const range = from < 0 ? [id] : idsBetween(groups, from, to)
    const next = new Set(selected)
    for (const one of range) {
      if (isSelected) next.add(one)
      else next.delete(one)
    }
    setAnchor(id)
    onSelect(next)
  }
  const selectAll = (isSelected: boolean) =>
    onSelect(new Set(isSelected ? groups.map(({ id }) => id) : []))

  useKeys({
    j: () => move(1),
    k: () => move(at < 0 ? 1 : -1),
    ...(current === undefined
      ? {}
      : {
          Enter: () => void navigate({ to: groupPath(current.id) }),
          x: () => select(current.id, !selected.has(current.id)),
          'Shift+x': () => select(current.id, true, true),
          ...(can(me, 'replay', current.source) && current.openCount > 0
            ? {
                r: () =>
                  void navigate({
                    to: '/$',
                    params: { _splat: 'replays/new' },
                    search: { group: current.id },
                  }),
              }
            : {}),
        }),
    ...(section?.kind === 'group' && section.section !== ''
      ? { ArrowLeft: () => onFold(section.section, true) }
      : {}),
    ArrowRight: () => {
      for (const item of items) if (item.kind === 'section') onFold(item.name, false)
    },
    'Shift+a': () => selectAll(true),
    ...(selected.size > 0 ? { Escape: () => onSelect(new Set()) } : {}),
  })
  return { focused, select, selectAll }
}

const idsBetween = (groups: readonly Group[], from: number, to: number) =>
  groups.slice(Math.min(from, to), Math.max(from, to) + 1).map(({ id }) => id)
