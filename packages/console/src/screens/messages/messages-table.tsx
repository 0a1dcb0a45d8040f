import { Link } from '@tanstack/react-router'
import { memo, useCallback, useEffect, useLayoutEffect, useRef } from 'react'
import { Checkbox } from '../../components/checkbox.tsx'
import { Mark } from '../../components/icon.tsx'
import { Peer } from '../../components/peer.tsx'
import { STATES, Status, Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import type { MessageRow } from '../../data/messages.ts'
import { Spacer, useWindowRows } from '../../list/window-rows.tsx'
import { messagePath } from '../../paths.ts'
import {
  type ColumnName,
  columnTitle,
  type MESSAGE_COLUMNS,
  type MessageColumn,
} from '../../words/message-columns.ts'
import { bytesText, countText } from '../../words/numbers.ts'
import { valueText } from '../../words/values.ts'

const ROW_PX = 37
/** Load the next page this many rows before the end of the list is visible. */
const AHEAD_ROWS = 30

export interface MessagesTableProps {
  readonly rows: readonly MessageRow[]
  readonly columns: readonly ColumnName[]
  /** The filter of the list, which the page of a message uses to find its neighbours. */
  readonly filter: string
  readonly selected: ReadonlySet<string>
  readonly focused: string | undefined
  readonly onSelect: (id: string, isSelected: boolean, withRange: boolean) => void
  readonly onSelectAll: (isSelected: boolean) => void
  /** Loads the next page. Undefined: there is none, or it is loading. */
  readonly onMore: (() => void) | undefined
}

/** The messages, newest failure first. Only the visible rows exist. */
export function MessagesTable(props: MessagesTableProps) {
  const { rows, columns, filter, selected, focused, onSelect, onSelectAll, onMore } = props
  const { frame, visible, before, after } = useWindowRows({
    count: rows.length,
    heightOf: () => ROW_PX,
    focusedAt: rows.findIndex(({ id }) => id === focused),
  })
  const lastVisible = visible.at(-1) ?? 0
  useEffect(() => {
    if (lastVisible >= rows.length - AHEAD_ROWS) onMore?.()
  }, [lastVisible, rows.length, onMore])
  const select = useLatest(onSelect)
  return (
    <div ref={frame} className="table-scroll">
      <table className="table messages-table" aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            <th className="messages-check">
              <Checkbox
                label="Select all loaded messages"
                isChecked={selected.size === rows.length}
                isPartly={selected.size > 0 && selected.size < rows.length}
                onChange={onSelectAll}
              />
            </th>
            <th scope="col">Key</th>
            {columns.map((name) => (
              <th key={name} scope="col" className={classOf(name)}>
                {name.startsWith('header:') ? (
                  <code>
                    <Peer text={columnTitle(name)} most={40} />
                  </code>
                ) : (
                  columnTitle(name)
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer height={before} />
          {visible.map((index) => {
            const row = rows[index]
            if (row === undefined) return null
            return (
              <Row
                key={row.id}
                row={row}
                rowIndex={index + 2}
                columns={columns}
                filter={filter}
                isSelected={selected.has(row.id)}
                isFocused={row.id === focused}
                onSelect={select}
              />
            )
          })}
          <Spacer height={after} />
        </tbody>
      </table>
    </div>
  )
}

interface RowProps {
  readonly row: MessageRow
  readonly rowIndex: number
  readonly columns: readonly ColumnName[]
  readonly filter: string
  readonly isSelected: boolean
  readonly isFocused: boolean
  readonly onSelect: MessagesTableProps['onSelect']
}

/** One message. A key or a click changes two rows, so the others are not rendered again. */
const Row = memo(function Row(props: RowProps) {
  const { row, rowIndex, columns, filter, isSelected, isFocused, onSelect } = props
  return (
    <tr
      aria-rowindex={rowIndex}
      aria-selected={isSelected}
      data-selected={isSelected ? '' : undefined}
      data-focused={isFocused ? '' : undefined}
    >
      <td className="messages-check">
        <Checkbox
          label={`Select ${row.key.slice(0, 80)}`}
          isChecked={isSelected}
          onChange={(isChecked, withRange) => onSelect(row.id, isChecked, withRange)}
        />
      </td>
      <td className="messages-key">
        <span className="only-narrow">
          <Mark {...markOf(row.status)} />
        </span>
        <Link to={messagePath(row.id)} search={{ from: filter }} className="link mono cut">
          <Peer text={row.key} most={80} />
        </Link>
      </td>
      {columns.map((name) => (
        <td key={name} className={classOf(name)}>
          <Cell row={row} name={name} />
        </td>
      ))}
    </tr>
  )
})

/** Returns a function that stays the same and calls the latest one. */
function useLatest<A extends readonly unknown[]>(call: (...args: A) => void) {
  const latest = useRef(call)
  useLayoutEffect(() => {
    latest.current = call
  })
  return useCallback((...args: A) => latest.current(...args), [])
}

const markOf = (status: MessageRow['status']) => {
  const { shape, tone } = STATES[status]
  return { shape, tone }
}

const NUMBERS: readonly string[] = ['attempts', 'cycle', 'size', 'first', 'failed']
const WIDE_ONLY: readonly string[] = [
  'status',
  'type',
  'handler',
  'code',
  'lane',
  'messageId',
  'source',
]

const classOf = (name: ColumnName) =>
  [
    `messages-${name.startsWith('header:') ? 'header' : name}`,
    ...(NUMBERS.includes(name) ? ['num'] : []),
    ...(WIDE_ONLY.includes(name) || name.startsWith('header:') ? ['only-wide'] : []),
    ...(['attempts', 'cycle', 'size', 'first'].includes(name) ? ['only-wide'] : []),
  ].join(' ')

/** What a cell shows. */
// biome-ignore format: one row per column
const CELLS: Readonly<Record<keyof typeof MESSAGE_COLUMNS, (row: MessageRow) => React.ReactNode>> = {
  status: ({ status, quarantined }) => <span className="row"><Status state={status} />{quarantined ? <Tag text="quarantined" tone="warn" /> : null}</span>,
  what: ({ message }) => <span className="mono cut"><Peer text={message} most={300} /></span>,
  source: ({ source }) => source,
  type: ({ type }) => <Peer text={type ?? '–'} most={80} />,
  handler: ({ handler }) => <Peer text={handler ?? '–'} most={80} />,
  code: ({ code }) => <span className="mono"><Peer text={code ?? '–'} most={80} /></span>,
  lane: ({ lane }) => <span className="mono"><Peer text={lane ?? '–'} most={80} /></span>,
  messageId: ({ messageId }) => <span className="mono"><Peer text={messageId} most={80} /></span>,
  attempts: ({ attempts }) => countText(attempts),
  cycle: ({ cycle }) => (cycle > 1 ? <b>{countText(cycle)}</b> : countText(cycle)),
  size: ({ payloadBytes }) => bytesText(payloadBytes),
  first: ({ firstFailedAt }) => <Time at={firstFailedAt} />,
  failed: ({ lastFailedAt }) => <Time at={lastFailedAt} />,
}

const Cell = ({ row, name }: { readonly row: MessageRow; readonly name: ColumnName }) => {
  const cell = CELLS[name as MessageColumn]
  if (cell !== undefined) return cell(row)
  const value = row.headers[name.slice('header:'.length)]
  return (
    <span className="mono">
      <Peer text={value === undefined ? '–' : valueText(value)} most={80} />
    </span>
  )
}
