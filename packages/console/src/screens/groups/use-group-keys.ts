import { useNavigate } from '@tanstack/react-router'
import { useMe } from '../../data/me.ts'
import { can } from '../../data/permissions.ts'
import { type ListKeysOptions, useListKeys } from '../../list/use-list-keys.ts'
import { groupPath } from '../../paths.ts'
import type { Item } from './sections.ts'

export interface GroupKeysOptions extends Pick<ListKeysOptions, 'selected' | 'onSelect'> {
  readonly items: readonly Item[]
  readonly onFold: (section: string, isFolded: boolean) => void
}

/** The keys of the list of groups. */
export function useGroupKeys({ items, selected, onSelect, onFold }: GroupKeysOptions) {
  const navigate = useNavigate()
  const me = useMe()
  const rows = items.filter((item) => item.kind === 'group')
  return useListKeys({
    ids: rows.map(({ group }) => group.id),
    selected,
    onSelect,
    onOpen: (id) => void navigate({ to: groupPath(id) }),
    keysFor: (focused) => {
      const row = rows.find(({ group }) => group.id === focused)
      const canReplay =
        row !== undefined && can(me, 'replay', row.group.source) && row.group.openCount > 0
      return {
        ...(canReplay
          ? { r: () => void navigate({ to: '/replays/new', search: { group: row.group.id } }) }
          : {}),
        ...(row !== undefined && row.section !== ''
          ? { ArrowLeft: () => onFold(row.section, true) }
          : {}),
        ArrowRight: () => {
          for (const item of items) if (item.kind === 'section') onFold(item.name, false)
        },
      }
    },
  })
}
