import { useEffect, useRef } from 'react'
import { Button } from '../../components/button.tsx'
import { Checkbox } from '../../components/checkbox.tsx'
import { Peer } from '../../components/peer.tsx'
import { Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useMe } from '../../data/me.ts'
import type { SetAsideAction, SetAsideMessage } from '../../data/sources.ts'
import { useKeys } from '../../keys.ts'
import { SelectionBar } from '../../list/list-parts.tsx'
import { bytesText, countOf, countText } from '../../words/numbers.ts'
import { REASON_NAMES } from '../../words/set-aside.ts'
import { actionsOf } from './set-aside-actions.ts'

export interface SetAsideListProps {
  readonly messages: readonly SetAsideMessage[]
  readonly shown: string | undefined
  readonly selected: ReadonlySet<string>
  readonly onSelect: (selected: ReadonlySet<string>) => void
  readonly onShow: (id: string) => void
}

/** The messages. `j` and `k` show the next one, `x` selects it for a change of several. */
export function SetAsideList({ messages, shown, selected, onSelect, onShow }: SetAsideListProps) {
  const at = messages.findIndex(({ id }) => id === shown)
  const current = useRef<HTMLLIElement>(null)
  useEffect(() => {
    current.current?.scrollIntoView({ block: 'nearest' })
  }, [shown])
  const move = (step: number) => {
    const next = messages[Math.max(0, Math.min(messages.length - 1, at + step))]
    if (next !== undefined) onShow(next.id)
  }
  const select = (id: string) => {
    const next = new Set(selected)
    if (!next.delete(id)) next.add(id)
    onSelect(next)
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    'Shift+a': () => onSelect(new Set(messages.map(({ id }) => id))),
    ...(at < 0 ? {} : { x: () => select(messages[at]?.id ?? '') }),
    ...(selected.size > 0 ? { Escape: () => onSelect(new Set()) } : {}),
  })
  return (
    <ul className="set-aside-rows">
      {messages.map((message) => (
        <li
          key={message.id}
          ref={message.id === shown ? current : undefined}
          data-shown={message.id === shown ? '' : undefined}
          data-selected={selected.has(message.id) ? '' : undefined}
        >
          <Checkbox
            label={`Select ${REASON_NAMES[message.reason]}, ${message.id.slice(-8)}`}
            isChecked={selected.has(message.id)}
            onChange={() => select(message.id)}
          />
          <Row message={message} isShown={message.id === shown} onShow={onShow} />
        </li>
      ))}
    </ul>
  )
}

interface RowProps {
  readonly message: SetAsideMessage
  readonly isShown: boolean
  readonly onShow: (id: string) => void
}

const Row = ({ message, isShown, onShow }: RowProps) => (
  <button
    type="button"
    aria-current={isShown ? 'true' : undefined}
    onClick={() => onShow(message.id)}
  >
    <span className="set-aside-line">
      <b className="cut">{REASON_NAMES[message.reason]}</b>
      {message.status === 'open' ? null : (
        <Tag
          text={message.status}
          {...(message.status === 'requested' ? { tone: 'warn' as const } : {})}
        />
      )}
      <span className="grow" />
      <span className="faint small">
        <Time at={message.at} />
      </span>
    </span>
    <span className="quiet small cut">
      {message.source} · {bytesText(message.payloadBytes)} · <Peer text={message.key} most={80} />
    </span>
  </button>
)

export interface SetAsideBulkProps {
  readonly messages: readonly SetAsideMessage[]
  readonly onAction: (action: SetAsideAction) => void
  readonly onClear: () => void
}

/** The actions that every selected message allows. */
export function SetAsideBulk({ messages, onAction, onClear }: SetAsideBulkProps) {
  const me = useMe()
  const each = messages.map((message) => actionsOf(message, me))
  const common = (each[0] ?? []).filter(({ action, refusal }) =>
    each.every((all) =>
      all.some(
        (one) => one.action === action && one.refusal === undefined && refusal === undefined,
      ),
    ),
  )
  return (
    <SelectionBar label="Selection" onClear={onClear}>
      <b>{countOf(messages.length, 'message')} selected</b>
      {common.length === 0 ? (
        <span className="quiet small">No action is possible on all of them.</span>
      ) : null}
      {common.map(({ action, bulk }) => (
        <Button key={action} size="small" onClick={() => onAction(action)}>
          {bulk} {countText(messages.length)}…
        </Button>
      ))}
    </SelectionBar>
  )
}
