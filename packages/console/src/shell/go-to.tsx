import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useDeferredValue, useState } from 'react'
import { Icon, Mark } from '../components/icon.tsx'
import { Palette, type PaletteOption } from '../components/palette.tsx'
import { Peer } from '../components/peer.tsx'
import { useMe } from '../data/me.ts'
import { groupsQuery, sourcesQuery } from '../data/queries.ts'
import { formatFilterWord } from '@redrive/api/filter'
import { groupPath } from '../paths.ts'
import { countText } from '../words/numbers.ts'
import { navFor } from './nav.ts'

/** 6 results of each kind: the first ones are visible without scrolling. */
const EACH_MAX = 6

/** The palette of the shell: screens, groups, sources, and messages by exact key. */
export function GoTo({ onClose }: { readonly onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const text = useDeferredValue(typed.trim())
  const me = useMe()
  const navigate = useNavigate()
  const query = text === '' ? { hasOpen: true, limit: EACH_MAX } : { text, limit: EACH_MAX }
  const groups = useQuery(groupsQuery({ ...query, order: 'open_count' })).data?.groups ?? []
  const sources = useQuery(sourcesQuery).data ?? []
  const fits = (name: string) => name.toLowerCase().includes(text.toLowerCase())
  const options: readonly PaletteOption[] = [
    ...navFor(me)
      .filter(({ label }) => text !== '' && fits(label))
      .map(({ name, label, to, icon, key }) => ({
        id: `screen ${name}`,
        section: 'Screens',
        icon: <Icon name={icon} />,
        text: label,
        note: key === undefined ? undefined : `g ${key}`,
        onChoose: () => void navigate({ to }),
      })),
    ...groups.map(({ id, title, openCount }) => ({
      id: `group ${id}`,
      section: 'Groups',
      icon: <Mark shape="open" tone={openCount > 0 ? 'bad' : 'idle'} />,
      text: <Peer text={title} most={200} />,
      note: `${countText(openCount)} open`,
      onChoose: () => void navigate({ to: groupPath(id) }),
    })),
    ...sources
      .filter(({ source }) => fits(source))
      .slice(0, EACH_MAX)
      .map(({ source, open }) => ({
        id: `source ${source}`,
        section: 'Sources',
        icon: <Icon name="sources" />,
        text: source,
        note: `${countText(open)} open`,
        onChoose: () =>
          void navigate({ to: '/groups', search: { q: formatFilterWord('source', source) } }),
      })),
    ...sources
      .filter(({ source }) => text !== '' && fits(`policy of ${source}`))
      .slice(0, EACH_MAX)
      .map(({ source }) => ({
        id: `policy ${source}`,
        section: 'Policies',
        icon: <Icon name="settings" />,
        text: `Policy of ${source}`,
        note: 'simulator',
        onChoose: () => void navigate({ to: '/sources/$source/policy', params: { source } }),
      })),
    ...(text === ''
      ? []
      : [
          {
            id: 'key',
            section: 'Messages',
            icon: <Icon name="messages" />,
            text: `Find the key ${text} in Messages`,
            note: 'exact key',
            onChoose: () =>
              void navigate({
                to: '/messages',
                search: { q: formatFilterWord('key', text) },
              }),
          },
        ]),
  ]
  return <Palette typed={typed} onType={setTyped} options={options} onClose={onClose} />
}
