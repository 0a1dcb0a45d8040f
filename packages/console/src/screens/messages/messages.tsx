import { ApiError } from '@redrive/api'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useNow } from '../../clock.ts'
import { Card } from '../../components/card.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { FilterBar } from '../../components/filter-bar.tsx'
import { Icon } from '../../components/icon.tsx'
import { Menu } from '../../components/menu.tsx'
import { Segments } from '../../components/tabs.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { type MessageRow, messagePagesQuery, newestQuery } from '../../data/messages.ts'
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
import { messageFilter, messageFilterKeys } from '../../words/message-filter.ts'
import { currentRows } from '../../words/message-rows.ts'
import { SettleDialog } from '../message/settle-dialog.tsx'
import type { Settling } from './messages-bar.tsx'
import { NoMessages, NoneSoFar, RANGE_NAMES } from './messages-empty.tsx'
import { MessagesList } from './messages-list.tsx'
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
  const [settling, setSettling] = useState<Settling>()
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
        <NoneSoFar
          searchedTo={searchedTo}
          isBusy={found.isFetchingNextPage}
          onMore={() => void found.fetchNextPage()}
        />
      ) : rows.length === 0 && added === 0 ? (
        <NoMessages
          filter={q}
          range={isRanged ? range : undefined}
          onClear={() => change({ q: '' })}
        />
      ) : (
        <MessagesList
          key={filter}
          rows={rows}
          added={added}
          columns={shown}
          filter={filter ?? ''}
          hasMore={found.hasNextPage}
          error={found.error}
          onRetry={() => void found.fetchNextPage()}
          onSettle={setSettling}
          onMore={
            found.hasNextPage && !found.isFetchingNextPage && found.error === null
              ? () => void found.fetchNextPage()
              : undefined
          }
        />
      )}
      {settling === undefined ? null : (
        <SettleDialog {...settling} onClose={() => setSettling(undefined)} />
      )}
    </Page>
  )
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
