import type { Group } from '@redrive/api'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Facts } from '../../components/card.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { Peer } from '../../components/peer.tsx'
import {
  changeGroup,
  discardFrozen,
  type DiscardProgress,
  freezeForDiscard,
  refreshGroups,
} from '../../data/group-actions.ts'
import { useMe } from '../../data/me.ts'
import { can } from '../../data/permissions.ts'
import { useChange } from '../../dialogs/use-change.ts'
import { countOf, countText } from '../../words/numbers.ts'
import { clockText } from '../../words/times.ts'

export type GroupDialog = 'discard' | 'mute' | 'resolve' | 'reopen'

export interface GroupDialogsProps {
  readonly kind: GroupDialog
  readonly groups: readonly Group[]
  /** The version that the user saw, on the page of one group. */
  readonly etag?: string | undefined
  readonly onClose: () => void
  readonly onDone?: () => void
}

/** The dialogs before a change of groups. */
export const GroupDialogs = (props: GroupDialogsProps) =>
  props.kind === 'discard' ? (
    <DiscardDialog {...props} />
  ) : (
    <ChangeDialog {...props} kind={props.kind} />
  )

interface Change {
  readonly title: string
  readonly effect: string
  readonly confirm: string
  readonly done: string
  readonly flags: string
}

const CHANGES: Readonly<Record<Exclude<GroupDialog, 'discard'>, Change>> = {
  mute: {
    title: 'Mute',
    effect:
      'A muted group causes no alerts and is not in the list of open groups. New failures are still counted.',
    confirm: 'Mute',
    done: 'Muted',
    flags: '--state muted',
  },
  resolve: {
    title: 'Resolve',
    effect:
      'A new failure opens the group again and marks it as regressed. Open messages stay open.',
    confirm: 'Resolve',
    done: 'Resolved',
    flags: '--state resolved',
  },
  reopen: {
    title: 'Reopen',
    effect: 'The group is in the list of open groups again.',
    confirm: 'Reopen',
    done: 'Reopened',
    flags: '--state open',
  },
}

const STATES = { mute: 'muted', resolve: 'resolved', reopen: 'open' } as const
const MUTES = [
  { label: '1 hour', ms: 3_600_000, flag: '1h' },
  { label: '1 day', ms: 86_400_000, flag: '1d' },
  { label: '7 days', ms: 604_800_000, flag: '7d' },
  { label: 'Until it is reopened', ms: undefined, flag: undefined },
] as const

function ChangeDialog(props: GroupDialogsProps & { readonly kind: keyof typeof CHANGES }) {
  const { kind, groups, etag, onClose, onDone } = props
  const [mute, setMute] = useState<(typeof MUTES)[number]>(MUTES[1])
  const { run, isBusy, problem } = useChange(() => {
    onClose()
    onDone?.()
  })
  const { title, effect, confirm, done, flags } = CHANGES[kind]
  const count = countOf(groups.length, 'group')
  const until = kind === 'mute' && mute.flag !== undefined ? ` --until ${mute.flag}` : ''
  const confirmChange = () =>
    run(async (key) => {
      const mutedUntil =
        kind === 'mute' && mute.ms !== undefined ? { mutedUntil: Date.now() + mute.ms } : {}
      for (const { id } of groups) {
        await changeGroup(id, { state: STATES[kind], ...mutedUntil }, { etag, key: `${key}-${id}` })
      }
      return `${done} ${count}`
    })
  return (
    <Confirm
      title={`${title} ${count}`}
      cancelLabel="Cancel"
      confirmLabel={`${confirm} ${count}`}
      cli={`redrive groups change ${groups[0]?.id ?? ''} ${flags}${until}`}
      isBusy={isBusy}
      problem={problem}
      onConfirm={confirmChange}
      onClose={onClose}
    >
      <p>{effect}</p>
      <Subject groups={groups} />
      {kind === 'mute' ? (
        <label className="field">
          <span>Mute for</span>
          <select
            value={mute.label}
            onChange={({ target }) =>
              setMute(MUTES.find(({ label }) => label === target.value) ?? MUTES[1])
            }
          >
            {MUTES.map(({ label }) => (
              <option key={label}>{label}</option>
            ))}
          </select>
        </label>
      ) : null}
    </Confirm>
  )
}

/** Shows the exact number of messages that are discarded. They are selected when the dialog opens. */
function DiscardDialog({ groups, onClose, onDone }: GroupDialogsProps) {
  const me = useMe()
  const ids = groups.map(({ id }) => id)
  const frozen = useQuery({
    queryKey: ['freeze', ...ids],
    queryFn: () => freezeForDiscard(ids),
    // Each dialog creates its own selection, once.
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  })
  const [progress, setProgress] = useState<DiscardProgress>({ commented: [] })
  const isDiscarded = progress.changed !== undefined
  const { run, isBusy, problem } = useChange(() => {
    onClose()
    onDone?.()
  })
  const close = () => {
    onClose()
    if (!isDiscarded) return
    // The messages are discarded, only the reason is missing.
    void refreshGroups(...ids)
    onDone?.()
  }
  const count = frozen.data?.count ?? 0
  const messages = count === 1 ? 'message' : 'messages'
  const waiting = frozen.data === undefined ? 'The messages are being counted.' : undefined
  const none = count === 0 ? 'No message is open.' : undefined
  return (
    <Confirm
      title={
        frozen.data === undefined ? 'Discard messages' : `Discard ${countText(count)} ${messages}`
      }
      cancelLabel={isDiscarded ? 'Close' : 'Keep'}
      confirmLabel={isDiscarded ? 'Save the reason' : `Discard ${countText(count)} ${messages}`}
      isDanger={!isDiscarded}
      hasReason={groups.every(({ source }) => can(me, 'triage', source))}
      count={count}
      cli={`redrive discard ${ids.map((id) => `group:${id}`).join(' ')}`}
      isBusy={isBusy}
      problem={
        problem !== undefined && isDiscarded
          ? `The messages are discarded, but the reason is not saved as a comment. ${problem} Save it again.`
          : problem
      }
      disabledReason={waiting ?? none}
      onConfirm={(reason) =>
        run(async (key) => {
          if (frozen.data === undefined) return ''
          const given = { reason, key }
          const changed = await discardFrozen(frozen.data, ids, given, progress, setProgress)
          return `Discarded ${countOf(changed, 'message')}`
        })
      }
      onClose={close}
    >
      <p>
        Discarded messages are not replayed. You can restore them until they expire. Failures after{' '}
        {frozen.data === undefined
          ? 'now'
          : clockText(frozen.data.selectedAt, frozen.data.selectedAt, 'local')}{' '}
        are not included.
      </p>
      {frozen.error === null ? null : <LoadError what="the messages" error={frozen.error} />}
      {frozen.isLoading ? <Skeleton rows={1} /> : null}
      <Subject groups={groups} />
    </Confirm>
  )
}

export const Subject = ({ groups }: { readonly groups: readonly Group[] }) => {
  const [first] = groups
  if (first === undefined) return null
  const more = groups.length - 1
  return (
    <Facts
      facts={[
        {
          name: more === 0 ? 'Group' : 'Groups',
          value: (
            <>
              <Peer text={first.title} most={200} />
              {more === 0 ? null : ` and ${countText(more)} more`}
            </>
          ),
        },
        { name: 'Source', value: [...new Set(groups.map(({ source }) => source))].join(', ') },
      ]}
    />
  )
}
