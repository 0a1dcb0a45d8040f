import type { Run } from '@redrive/api'
import { useState } from 'react'
import { useNow } from '../../clock.ts'
import { Button } from '../../components/button.tsx'
import { problemOf } from '../../components/feedback.tsx'
import { toast } from '../../components/toast.tsx'
import { useMe } from '../../data/me.ts'
import { can } from '../../data/permissions.ts'
import { approveRun } from '../../data/runs.ts'
import { countOf } from '../../words/numbers.ts'
import { EXPIRED, isExpired } from '../../words/plan.ts'
import { sizeOf } from '../../words/runs.ts'

export interface ApproveButtonProps {
  readonly run: Run
  /** Whether fields differ from the plan. */
  readonly isChanged?: boolean
}

/**
 * Approves and starts the run, or copies the link for another person who can. Only the permissions of the run decide: a
 * button that the server would refuse is not shown.
 */
export function ApproveButton({ run, isChanged = false }: ApproveButtonProps) {
  const me = useMe()
  const now = useNow()
  const [key] = useState(() => crypto.randomUUID())
  const [isBusy, setBusy] = useState(false)
  const isOwn = run.plannedBy === me.person
  const size = sizeOf(run)
  const { actions = ['approve'] } = run.approval ?? {}
  const canApprove = can(me, 'approve', run.source) && (!isOwn || me.canApproveOwn)
  if (!canApprove) return isOwn ? <CopyLink isChanged={isChanged} /> : null
  const missing = actions.find((action) => !can(me, action, run.source))
  if (missing !== undefined)
    return (
      <span className="small quiet">
        Permission {missing} is required on {run.source}: an approver must see the whole change.
      </span>
    )
  const reason = isExpired(run, now)
    ? EXPIRED
    : size === 0
      ? 'No message is ready.'
      : isChanged
        ? 'Update the plan first. An approval applies to the plan as it is stored.'
        : isBusy
          ? 'The run is being started.'
          : undefined
  const approve = () => {
    setBusy(true)
    approveRun(run, key)
      .then(() => toast({ text: `Started: ${countOf(size, 'message')}`, tone: 'run' }))
      .catch((error: unknown) => toast({ text: problemOf(error).detail, tone: 'bad' }))
      .finally(() => setBusy(false))
  }
  return (
    <Button {...(isChanged ? {} : { kind: 'primary' })} disabledReason={reason} onClick={approve}>
      {run.state === 'paused'
        ? 'Approve again and resume'
        : isOwn
          ? `Start replay of ${countOf(size, 'message')}`
          : `Approve ${countOf(size, 'message')}`}
    </Button>
  )
}

const CopyLink = ({ isChanged }: { readonly isChanged: boolean }) => (
  <Button
    {...(isChanged ? {} : { kind: 'primary' })}
    onClick={() => {
      navigator.clipboard.writeText(location.href).then(
        () => toast({ text: 'Link copied. Send it to a person who can approve.', tone: 'good' }),
        () => toast({ text: `Copy this address: ${location.href}`, tone: 'warn' }),
      )
    }}
  >
    Copy link for an approver
  </Button>
)
