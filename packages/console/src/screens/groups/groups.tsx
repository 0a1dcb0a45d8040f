import { type Group, ApiError } from '@redrive/api'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card } from '../../components/card.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { FilterBar } from '../../components/filter-bar.tsx'
import { Icon } from '../../components/icon.tsx'
import { Kbd } from '../../components/kbd.tsx'
import { Menu } from '../../components/menu.tsx'
import { Segments, Tabs } from '../../components/tabs.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import { type GroupQuery, groupsQuery, overviewQuery } from '../../data/queries.ts'
import { NewRows } from '../../list/list-parts.tsx'
import { Page } from '../../shell/page.tsx'
import {
  GROUP_FILTER_KEYS,
  GROUP_VIEWS,
  type GroupView,
  parseGroupFilter,
  viewQuery,
} from '../../words/group-filter.ts'
import { cappedText } from '../../words/numbers.ts'
import { decisionsOf } from '../../words/verdict.ts'
import { BulkBar } from './bulk-bar.tsx'
import { GroupsTable } from './groups-table.tsx'
import { itemsOf, SECTIONS, type SectionKey } from './sections.ts'
import { useGroupKeys } from './use-group-keys.ts'
import { useStableRows } from './use-rows.ts'
import './groups.css'

const VIEW_NAMES: Readonly<Record<GroupView, string>> = {
  open: 'Open',
  decision: 'Needs a decision',
  mine: 'Mine',
  regressed: 'Regressed',
  muted: 'Muted',
  resolved: 'Resolved',
  all: 'All',
}
const SECTION_NAMES: Readonly<Record<SectionKey, string>> = {
  none: 'None',
  source: 'Source',
  class: 'Class',
  handler: 'Handler',
}
const ORDERS = {
  open_count: 'Most open',
  last_seen: 'Latest failure',
  count: 'Most in total',
} as const
/** 200: the most that the API returns in one page. Views show a capped count. */
const LIMIT = 200

/** Which failures exist. The address has the view, the filter, the order and the sections. */
export function Groups() {
  const me = useMe()
  const navigate = useNavigate({ from: '/groups' })
  const {
    view = 'open',
    q = '',
    order = 'open_count',
    by = 'none',
  } = useSearch({ from: '/groups' })
  const parsed = parseGroupFilter(q)
  const filter = 'query' in parsed ? parsed.query : {}
  const query: GroupQuery = { ...viewQuery(view, me.person), ...filter, order, limit: LIMIT }
  const found = useLiveQuery(groupsQuery(query), 5_000)
  const alerts = useLiveQuery(overviewQuery, 10_000).data?.alerts ?? []
  const all = found.data?.groups ?? []
  const matching = view === 'decision' ? decisionsOf(all, alerts) : all
  const isCapped = found.data?.nextCursor !== undefined
  const { rows, added, show } = useStableRows(matching, JSON.stringify([view, q, order]))
  const change = (next: GroupsSearch, replace = false) =>
    void navigate({ search: (search) => ({ ...search, ...next }), replace })
  const problem =
    'problem' in parsed
      ? parsed.problem
      : found.error instanceof ApiError && found.data !== undefined
        ? found.error.problem.detail
        : undefined
  return (
    <Page title="Groups" isHeading>
      <Tabs
        label="Views"
        tabs={GROUP_VIEWS.map((name) => ({
          name,
          label: VIEW_NAMES[name],
          count: name === view && found.data ? cappedText(matching.length, isCapped) : undefined,
        }))}
        current={view}
        onChange={(name) => change({ view: name })}
      />
      <div className="groups-controls">
        <FilterBar
          label="Filter groups"
          placeholder="Filter by text, source, class, handler, owner"
          filter={q}
          keys={keysFor(all)}
          onChange={(next) => change({ q: next })}
          problem={problem}
        />
        <Segments
          label="Sections"
          options={SECTIONS.map((name) => ({ name, label: SECTION_NAMES[name] }))}
          current={by}
          onChange={(name) => change({ by: name }, true)}
        />
        <Menu
          items={(Object.keys(ORDERS) as (keyof typeof ORDERS)[]).map((name) => ({
            label: ORDERS[name],
            isChosen: name === order,
            onChoose: () => change({ order: name }, true),
          }))}
        >
          {ORDERS[order]} <Icon name="down" />
        </Menu>
      </div>
      {found.data === undefined ? (
        <Card>
          {found.error === null ? (
            <Skeleton rows={8} />
          ) : (
            <LoadError what="groups" error={found.error} onRetry={() => void found.refetch()} />
          )}
        </Card>
      ) : matching.length === 0 ? (
        <NoGroups view={view} filter={q} onClear={() => change({ q: '' })} />
      ) : (
        <List key={JSON.stringify([view, q])} {...{ rows, by, added, isCapped }} onShow={show} />
      )}
    </Page>
  )
}

interface GroupsSearch {
  readonly view?: GroupView
  readonly q?: string
  readonly order?: keyof typeof ORDERS
  readonly by?: SectionKey
}

interface NoGroupsProps {
  readonly view: GroupView
  readonly filter: string
  readonly onClear: () => void
}

const NoGroups = ({ view, filter, onClear }: NoGroupsProps) => (
  <Card>
    {filter === '' ? (
      <Empty
        title={view === 'all' ? 'No group yet.' : `No group in the view "${VIEW_NAMES[view]}".`}
      />
    ) : (
      <Empty
        title="No group matches."
        action={
          <Button size="small" onClick={onClear}>
            Clear the filter
          </Button>
        }
      >
        The filter is <code>{filter}</code> in the view "{VIEW_NAMES[view]}".
      </Empty>
    )}
  </Card>
)

/** Returns the keys of the filter with the values of the loaded groups. */
function keysFor(groups: readonly Group[]) {
  const valuesOf = {
    source: groups.map(({ source }) => source),
    handler: groups.flatMap(({ handler }) => handler ?? []),
    owner: groups.flatMap(({ owner }) => owner ?? []),
  }
  return GROUP_FILTER_KEYS.map(({ name, description, values }) => ({
    name,
    description,
    values: [...new Set(name in valuesOf ? valuesOf[name as keyof typeof valuesOf] : values)],
  }))
}

interface ListProps {
  readonly rows: readonly Group[]
  readonly by: SectionKey
  readonly added: number
  readonly isCapped: boolean
  readonly onShow: () => void
}

function List({ rows, by, added, isCapped, onShow }: ListProps) {
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set())
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const items = itemsOf(rows, by, folded)
  const fold = (name: string, isFolded: boolean) => {
    const next = new Set(folded)
    if (isFolded) next.add(name)
    else next.delete(name)
    setFolded(next)
  }
  const keyboard = useGroupKeys({ items, selected, onSelect: setSelected, onFold: fold })
  const chosen = rows.filter(({ id }) => selected.has(id))
  const open = rows.reduce((sum, { openCount }) => sum + openCount, 0)
  return (
    <>
      <Card
        footer={
          <>
            <span>
              {cappedText(rows.length, isCapped)} {rows.length === 1 ? 'group' : 'groups'},{' '}
              {cappedText(open, isCapped)} open dead letters
              {isCapped ? '. The list ends at 200; use the filter' : ''}
            </span>
            <span className="grow" />
            <span className="row only-wide">
              Move <Kbd keys="j k" /> Open <Kbd keys="↵" /> Select <Kbd keys="x" /> Replay{' '}
              <Kbd keys="r" />
            </span>
          </>
        }
      >
        <NewRows count={added} noun="group" onShow={onShow} />
        <GroupsTable
          items={items}
          selected={selected}
          focused={keyboard.focused}
          onSelect={keyboard.select}
          onSelectAll={keyboard.selectAll}
          onFold={fold}
        />
      </Card>
      {chosen.length === 0 ? null : (
        <BulkBar groups={chosen} onClear={() => setSelected(new Set())} />
      )}
    </>
  )
}
