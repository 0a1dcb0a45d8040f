import { parseFilter } from '@redrive/api/filter'
import { Link, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { useNow } from '../../clock.ts'
import { Button, lookOf } from '../../components/button.tsx'
import { Card } from '../../components/card.tsx'
import { Kbd } from '../../components/kbd.tsx'
import { useMe } from '../../data/me.ts'
import type { MessageRow } from '../../data/messages.ts'
import { can, canSomewhere } from '../../data/permissions.ts'
import type { Me } from '../../data/queries.ts'
import { queryClient } from '../../data/query-client.ts'
import { NewRows } from '../../list/list-parts.tsx'
import { useListKeys } from '../../list/use-list-keys.ts'
import { messagePath } from '../../paths.ts'
import type { ColumnName } from '../../words/message-columns.ts'
import { frozenFilter } from '../../words/message-filter.ts'
import { cappedText } from '../../words/numbers.ts'
import { MessagesBar, type Settling } from './messages-bar.tsx'
import { MessagesTable } from './messages-table.tsx'

/** Whether a replay of a filter can be planned: only open messages, and the permission on each named source. */
function canReplayMatching(filter: string, me: Me, now: number): boolean {
  const { statuses, sources } = parseFilter(filter, now)
  if (statuses !== undefined || !canSomewhere(me, 'replay')) return false
  return sources === undefined || sources.every((source) => can(me, 'replay', source))
}

export interface MessagesListProps {
  readonly rows: readonly MessageRow[]
  readonly added: number
  readonly columns: readonly ColumnName[]
  readonly filter: string
  readonly hasMore: boolean
  readonly onMore: (() => void) | undefined
  /** Why the next page could not be loaded. */
  readonly error: Error | null
  readonly onRetry: () => void
  readonly onSettle: (settling: Settling) => void
}

/** The loaded messages, with their selection and its actions. */
export function MessagesList(props: MessagesListProps) {
  const { rows, added, columns, filter, hasMore, onMore, error, onRetry, onSettle } = props
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
      {chosen.length === 0 ? null : (
        <MessagesBar messages={chosen} onClear={clear} onSettle={onSettle} />
      )}
    </>
  )
}
