import type { Group } from '@redrive/api'
import { useNavigate } from '@tanstack/react-router'
import { useId, useState } from 'react'
import { Confirm } from '../../components/dialog.tsx'
import { FailureClass } from '../../components/failure-class.tsx'
import { Mark } from '../../components/icon.tsx'
import { Peer } from '../../components/peer.tsx'
import {
  mergeGroups,
  type SplitProgress,
  splitGroup,
  unmergeGroup,
} from '../../data/regroup-actions.ts'
import { useChange } from '../../dialogs/use-change.ts'
import { groupPath } from '../../paths.ts'
import { countOf, countText } from '../../words/numbers.ts'
import { mergeFacts } from '../../words/merge.ts'
import { Subject } from './group-dialogs.tsx'
import './regroup.css'

export interface MergeDialogProps {
  /** Groups of one source. */
  readonly groups: readonly Group[]
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Chooses the group that stays. The others, and their later failures, join it. */
export function MergeDialog({ groups, onClose, onDone }: MergeDialogProps) {
  const largest = groups.reduce((most, one) => (one.openCount > most.openCount ? one : most))
  const [chosen, setChosen] = useState(largest.id)
  const target = groups.find(({ id }) => id === chosen) ?? largest
  const others = groups.filter(({ id }) => id !== target.id)
  const moving = others.reduce((sum, { openCount }) => sum + openCount, 0)
  const count = countOf(groups.length, 'group')
  const { run, isBusy, problem } = useChange(() => {
    onClose()
    onDone()
  })
  const ids = others.map(({ id }) => id)
  return (
    <Confirm
      title={`Merge ${count}`}
      cancelLabel="Keep separate"
      confirmLabel={`Merge ${count}`}
      hasReason
      isReasonRequired
      cli={`redrive groups merge ${[target.id, ...ids].join(' ')} --reason "…"`}
      isBusy={isBusy}
      problem={problem}
      onConfirm={(reason) =>
        run(async (key) => {
          await mergeGroups(target.id, ids, { reason, key })
          return `Merged ${count}`
        })
      }
      onClose={onClose}
    >
      <p>
        Redrive moves {countOf(moving, 'open message')} into one group. Choose the group that stays.
        It keeps its id, owner and comments.
      </p>
      <Choice groups={groups} chosen={target.id} onChoose={setChosen} />
      <ul className="merge-facts">
        {mergeFacts(target, others).map(({ text, isWarning }) => (
          <li key={text}>
            {isWarning ? <Mark shape="warn" tone="warn" /> : <Mark shape="done" tone="good" />}
            {text}
          </li>
        ))}
      </ul>
    </Confirm>
  )
}

interface ChoiceProps {
  readonly groups: readonly Group[]
  readonly chosen: string
  readonly onChoose: (id: string) => void
}

function Choice({ groups, chosen, onChoose }: ChoiceProps) {
  const name = useId()
  return (
    <fieldset className="merge-choice">
      <legend className="visually-hidden">Group that stays</legend>
      {groups.map((group) => (
        <label key={group.id} data-chosen={group.id === chosen ? '' : undefined}>
          <input
            type="radio"
            name={name}
            checked={group.id === chosen}
            onChange={() => onChoose(group.id)}
          />
          <span className="merge-what">
            <span className="mono strong">
              <Peer text={group.title} most={200} />
            </span>
            <span className="row quiet small">
              <FailureClass name={group.class} />
              {group.code === undefined ? null : (
                <code>
                  <Peer text={group.code} most={40} />
                </code>
              )}
              {group.handler === undefined ? null : <Peer text={group.handler} most={80} />}
            </span>
          </span>
          <b className="num">{countText(group.openCount)}</b>
        </label>
      ))}
    </fieldset>
  )
}

/** Moves messages that match a filter into a new group. Later failures that match follow. */
export function SplitDialog({
  group,
  onClose,
}: {
  readonly group: Group
  readonly onClose: () => void
}) {
  const navigate = useNavigate()
  const [filter, setFilter] = useState('')
  const [name, setName] = useState('')
  const [progress, setProgress] = useState<SplitProgress>({ requests: 0, moved: 0 })
  const { run, isBusy, problem } = useChange(onClose)
  const missing =
    filter.trim() === '' || name.trim() === '' ? 'Enter a filter and a name.' : undefined
  const begun = progress.moved === 0 ? '' : ` Moved ${countText(progress.moved)}; continuing.`
  return (
    <Confirm
      title="Split group"
      cancelLabel="Keep together"
      confirmLabel="Split group"
      hasReason
      isReasonRequired
      cli={`redrive groups split ${group.id} --filter '${filter}' --name "${name}" --reason "…"`}
      isBusy={isBusy}
      problem={problem}
      disabledReason={missing}
      onConfirm={(reason) =>
        run(async (key) => {
          const given = { filter: filter.trim(), name: name.trim(), reason, key }
          const { group: made, moved } = await splitGroup(group.id, given, progress, setProgress)
          void navigate({ to: groupPath(made.id) })
          return `Moved ${countOf(moved, 'message')} into "${made.name ?? made.title}"`
        })
      }
      onClose={onClose}
    >
      <p>
        Redrive moves the open messages that match the filter into a new group. Later failures that
        match follow. No message is changed or replayed. To undo it, merge the two groups.{begun}
      </p>
      <Subject groups={[group]} />
      <label className="field">
        <span>Filter</span>
        <input
          value={filter}
          maxLength={4_000}
          placeholder={'code:55P03 "relation ledger"'}
          spellCheck={false}
          onChange={({ target }) => setFilter(target.value)}
        />
        <small>Fields: class, code, type, handler, header, text</small>
      </label>
      <label className="field">
        <span>Name of the new group</span>
        <input value={name} maxLength={200} onChange={({ target }) => setName(target.value)} />
      </label>
    </Confirm>
  )
}

export interface SeparateDialogProps {
  /** A group that was merged into `from`. */
  readonly group: Group
  readonly from: Group
  readonly onClose: () => void
}

/** Makes a merged group a separate group again. */
export function SeparateDialog({ group, from, onClose }: SeparateDialogProps) {
  const { run, isBusy, problem } = useChange(onClose)
  return (
    <Confirm
      title="Separate a merged group"
      cancelLabel="Keep merged"
      confirmLabel="Separate group"
      hasReason
      isReasonRequired
      cli={`redrive groups unmerge ${group.id} --reason "…"`}
      isBusy={isBusy}
      problem={problem}
      onConfirm={(reason) =>
        run(async (key) => {
          const { openCount } = await unmergeGroup(group.id, from.id, { reason, key })
          return `Separated a group with ${countOf(openCount, 'open message')}`
        })
      }
      onClose={onClose}
    >
      <p>
        Its messages and its later failures leave this group. No message is changed or replayed.
      </p>
      <Subject groups={[group]} />
    </Confirm>
  )
}
