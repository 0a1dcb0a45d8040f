import { ApiError } from '@redrive/api'
import { parseFilter } from '@redrive/api/filter'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { useNow } from '../../clock.ts'
import { Button, lookOf } from '../../components/button.tsx'
import { Card } from '../../components/card.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { FilterBar } from '../../components/filter-bar.tsx'
import { Icon } from '../../components/icon.tsx'
import { Kbd } from '../../components/kbd.tsx'
import { Menu } from '../../components/menu.tsx'
import { Segments } from '../../components/tabs.tsx'
import { Time } from '../../components/time.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import { type MessageRow, messagePagesQuery, newestQuery } from '../../data/messages.ts'
import { can, canSomewhere } from '../../data/permissions.ts'
import type { Me } from '../../data/queries.ts'
import { queryClient } from '../../data/query-client.ts'
import { NewRows } from '../../list/list-parts.tsx'
import { useListKeys } from '../../list/use-list-keys.ts'
import { messagePath } from '../../paths.ts'
import { Page } from '../../shell/page.tsx'
import {
  type ColumnName,
  columnTitle,
  headerColumns,
  MESSAGE_COLUMNS,
  type MessageColumn,
  parseColumns,
  toggledColumns,
} from '../../words/message-columns.ts'
import { MESSAGE_RANGES, type MessageRange } from '../../address-values.ts'
import { frozenFilter, messageFilter, messageFilterKeys } from '../../words/message-filter.ts'
import { currentRows } from '../../words/message-rows.ts'
import { cappedText } from '../../words/numbers.ts'
import { MessagesBar } from './messages-bar.tsx'
import { MessagesTable } from './messages-table.tsx'
import './messages.css'

interface MessagesSearch {
  readonly q?: string
  readonly range?: MessageRange
  readonly columns?: string
}

/** Which messages exactly. The address has the filter, the range and the columns. */
export function Messages() {
  const navigate = useNavigate({ from: '/messages' })
  const { q = '', range = '24h', columns } = useSearch({ from: '/messages' })
  const change = (next: MessagesSearch, replace = false) =>
    void navigate({ search: (search) => ({ ...search, ...next }), replace })
  const { filter, isRanged, problem } = messageFilter(q, range, useNow())
  const found = useInfiniteQuery({
    ...messagePagesQuery(filter ?? ''),
    enabled: filter !== undefined,
  })
  const newest = useLiveQuery(
    { ...newestQuery(filter ?? ''), enabled: filter !== undefined },
    5_000,
  )
  // A list can have 100,000 rows: it is only read again when it has changed.
  const loaded = useMemo(
    () => found.data?.pages.flatMap(({ deadLetters }) => deadLetters) ?? [],
    [found.data],
  )
  const { rows, added } = useMemo(() => currentRows(loaded, newest.data), [loaded, newest.data])
  const keys = useMemo(() => messageFilterKeys(valuesOf(rows)), [rows])
  const headers = useMemo(() => headerColumns(rows), [rows])
  const shown = useMemo(() => parseColumns(columns), [columns])
  const searchedTo = found.data?.pages.at(-1)?.searchedTo
  const refusal = found.error instanceof ApiError ? found.error.problem.detail : undefined
  return (
    <Page title="Messages" isHeading>
      <div className="messages-controls">
        <FilterBar
          label="Filter messages"
          placeholder="Filter by text, source, status, key, code, header"
          filter={q}
          keys={keys}
          onChange={(next) => change({ q: next })}
          problem={problem ?? (found.data === undefined ? undefined : refusal)}
        />
        {isRanged ? (
          <Segments
            label="Last failure"
            options={MESSAGE_RANGES.map((name) => ({ name, label: RANGE_NAMES[name] }))}
            current={range}
            onChange={(name) => change({ range: name }, true)}
          />
        ) : null}
        <span className="only-wide">
          <Menu items={columnItems(shown, headers, (next) => change({ columns: next }, true))}>
            Columns <Icon name="down" />
          </Menu>
        </span>
      </div>
      {found.data === undefined ? (
        <Card>
          {found.error === null && problem === undefined ? (
            <Skeleton rows={10} />
          ) : problem === undefined ? (
            <LoadError what="messages" error={found.error} onRetry={() => void found.refetch()} />
          ) : (
            <Empty title="The filter cannot be read." />
          )}
        </Card>
      ) : rows.length === 0 && added === 0 && found.hasNextPage ? (
        <Card>
          <Empty
            title="No message found so far."
            action={
              <Button
                size="small"
                disabledReason={found.isFetchingNextPage ? 'The search goes on.' : undefined}
                onClick={() => void found.fetchNextPage()}
              >
                Search on
              </Button>
            }
          >
            {searchedTo === undefined ? null : (
              <>
                Searched back to <Time at={searchedTo} isAgo />. A source or a group in the filter
                makes it faster.
              </>
            )}
          </Empty>
        </Card>
      ) : rows.length === 0 && added === 0 ? (
        <NoMessages
          filter={q}
          range={isRanged ? range : undefined}
          onClear={() => change({ q: '' })}
        />
      ) : (
        <List
          key={filter}
          rows={rows}
          added={added}
          columns={shown}
          filter={filter ?? ''}
          hasMore={found.hasNextPage}
          error={found.error}
          onRetry={() => void found.fetchNextPage()}
          onMore={
            found.hasNextPage && !found.isFetchingNextPage && found.error === null
              ? () => void found.fetchNextPage()
              : undefined
          }
        />
      )}
    </Page>
  )
}

const RANGE_NAMES: Readonly<Record<MessageRange, string>> = {
  '24h': '24 h',
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
}

/** Returns values to complete in the filter, from the loaded rows. */
const valuesOf = (rows: readonly MessageRow[]) => ({
  source: rows.map(({ source }) => source),
  code: rows.flatMap(({ code }) => code ?? []),
  type: rows.flatMap(({ type }) => type ?? []),
  handler: rows.flatMap(({ handler }) => handler ?? []),
  lane: rows.flatMap(({ lane }) => lane ?? []),
})

const columnItems = (
  shown: readonly ColumnName[],
  headers: readonly ColumnName[],
  onChange: (columns: string) => void,
) =>
  [...(Object.keys(MESSAGE_COLUMNS) as MessageColumn[]), ...headers].map((name) => ({
    label: columnTitle(name),
    isChecked: shown.includes(name),
    onChoose: () => onChange(toggledColumns(shown, name)),
  }))

interface NoMessagesProps {
  readonly filter: string
  readonly range: MessageRange | undefined
  readonly onClear: () => void
}

const NoMessages = ({ filter, range, onClear }: NoMessagesProps) => (
  <Card>
    <Empty
      title={filter === '' ? 'No open message.' : 'No message matches.'}
      action={
        filter === '' ? undefined : (
          <Button size="small" onClick={onClear}>
            Clear the filter
          </Button>
        )
      }
    >
      {range === undefined ? null : `The list has failures of the last ${RANGE_NAMES[range]}. `}
      Without a word such as <code>status:resolved</code>, it has only open messages.
    </Empty>
  </Card>
)

/** Whether a replay of a filter can be planned: only open messages, and the permission on each named source. */
function canReplayMatching(filter: string, me: Me, now: number): boolean {
  const { statuses, sources } = parseFilter(filter, now)
  if (statuses !== undefined || !canSomewhere(me, 'replay')) return false
  return sources === undefined || sources.every((source) => can(me, 'replay', source))
}

interface ListProps {
  readonly rows: readonly MessageRow[]
  readonly added: number
  readonly columns: readonly ColumnName[]
  readonly filter: string
  readonly hasMore: boolean
  readonly onMore: (() => void) | undefined
  /** Why the next page could not be loaded. */
  readonly error: Error | null
  readonly onRetry: () => void
}

function List(props: ListProps) {
  const { rows, added, columns, filter, hasMore, onMore, error, onRetry } = props
  const navigate = useNavigate()
  const me = useMe()
  const now = useNow()
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const ids = useMemo(() => rows.map(({ id }) => id), [rows])
  const keyboard = useListKeys({
    ids,
    selected,
    onSelect: setSelected,
    onOpen: (id) => void navigate({ to: messagePath(id), search: { from: filter } }),
  })
  const clear = useCallback(() => setSelected(new Set()), [])
  const chosen = useMemo(
    () => (selected.size === 0 ? [] : rows.filter(({ id }) => selected.has(id))),
    [rows, selected],
  )
  const count = `${cappedText(rows.length, hasMore)} ${rows.length === 1 ? 'message' : 'messages'}`
  return (
    <>
      <Card
        footer={
          <>
            <span>
              {count}
              {hasMore && error === null ? '. More are loaded when you scroll' : ''}
            </span>
            {error === null ? null : (
              <Button size="small" onClick={onRetry}>
                The next page could not be loaded. Retry
              </Button>
            )}
            <span className="grow" />
            <span className="row only-wide">
              Move <Kbd keys="j k" /> Open <Kbd keys="↵" /> Select <Kbd keys="x" />
            </span>
          </>
        }
      >
        <NewRows
          count={added}
          noun="message"
          onShow={() => void queryClient.resetQueries({ queryKey: ['message-pages', filter] })}
        />
        <div className="messages-head">
          <b>{count}</b>
          <span className="quiet">newest failure first</span>
          <span className="grow" />
          {canReplayMatching(filter, me, now) ? (
            <Link
              to="/replays/new"
              search={{ q: frozenFilter(filter, now) }}
              {...lookOf({ size: 'small' })}
            >
              Replay all that match…
            </Link>
          ) : null}
        </div>
        <MessagesTable
          rows={rows}
          columns={columns}
          filter={filter}
          selected={selected}
          focused={keyboard.focused}
          onSelect={keyboard.select}
          onSelectAll={keyboard.selectAll}
          onMore={onMore}
        />
      </Card>
      {chosen.length === 0 ? null : <MessagesBar messages={chosen} onClear={clear} />}
    </>
  )
}
