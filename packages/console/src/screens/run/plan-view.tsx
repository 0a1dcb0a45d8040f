import type { Run } from '@redrive/api'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useNow } from '../../clock.ts'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { Note } from '../../components/note.tsx'
import { Pill } from '../../components/status.tsx'
import { draftOf, keepDraft, keepMade, madeOf, planKeyName } from '../../data/drafts.ts'
import { forget } from '../../data/kept.ts'
import { useMe } from '../../data/me.ts'
import { can, personName } from '../../data/permissions.ts'
import { changeRun, planReplay, readRun } from '../../data/runs.ts'
import { useChange } from '../../dialogs/use-change.ts'
import { runPath } from '../../paths.ts'
import { apiText } from '../../words/equivalents.ts'
import { countOf } from '../../words/numbers.ts'
import {
  EXPIRED,
  expiryText,
  fieldsOf,
  isExpired,
  keptOptions,
  isSamePlan,
  paceText,
  type PlanFields,
  readPlan,
} from '../../words/plan.ts'
import { runTitle, sizeOf } from '../../words/runs.ts'
import { clockText } from '../../words/times.ts'
import { ApproveButton } from './approve-button.tsx'
import { ChangeCard } from './change-card.tsx'
import { PaceCard } from './pace-card.tsx'
import { FirstItems, LaterFailures, PreviewCard, ProofCard } from './preview-card.tsx'
import { RunDialog } from './run-dialog.tsx'
import { Steps } from './steps.tsx'

/** A plan: exactly what will be published and how fast. Nothing is published before the approval. */
export function PlanView({ run }: { readonly run: Run }) {
  const me = useMe()
  const navigate = useNavigate()
  const now = useNow()
  const made = madeOf(run)
  const planned = made?.fields ?? fieldsOf(run)
  const keyName = made === undefined ? undefined : planKeyName(made.selection)
  // Only now: before, a reload would make a second plan.
  useEffect(() => {
    if (keyName !== undefined) forget(keyName)
  }, [keyName])
  const [fields, setFields] = useState<PlanFields>(() => draftOf(run.id) ?? planned)
  const [isWithdrawing, setWithdrawing] = useState(false)
  const { run: start, isBusy, problem } = useChange(() => undefined)
  const change = (next: Partial<PlanFields>) => {
    const all = { ...fields, ...next }
    keepDraft(run.id, all)
    setFields(all)
  }
  const canPlan = can(me, 'replay', run.source)
  const isOwn = run.plannedBy === me.person
  const read = readPlan(fields)
  const isChanged = !isSamePlan(fields, planned)
  const problems = 'problems' in read ? read.problems : {}
  const noUpdate = !isChanged
    ? 'Nothing has changed.'
    : 'problems' in read
      ? 'Correct the marked fields first.'
      : made === undefined
        ? 'The plan was made in another tab. Make a new plan to change it.'
        : isBusy
          ? 'The plan is being updated.'
          : undefined
  const update = () =>
    start(async () => {
      // A new key for each update, because its content differs. The button is disabled while one is sent.
      const key = crypto.randomUUID()
      if (made === undefined || 'problems' in read) return ''
      const next = await planReplay(
        { selection: made.selection, ...keptOptions(run), ...read.options },
        { key },
      )
      keepMade(next.id, { selection: made.selection, fields })
      // The old plan must not be approved by mistake. If somebody has approved it meanwhile, it runs on.
      const old = await readRun(run.id)
      if (old.state === 'planned') await changeRun('cancelReplay', run.id, `${key}-cancel`)
      await navigate({ to: runPath(next.id), replace: true })
      return 'Plan updated'
    })
  const size = sizeOf(run)
  return (
    <>
      <section className="page-head run-head">
        <div>
          <div className="page-meta">
            <Pill state="planned" />
            <span>
              planned by {isOwn ? 'you' : personName(run.plannedBy)} at{' '}
              {clockText(run.plannedAt, now, 'local')}
            </span>
            <code title={run.hash}>{run.hash.slice(0, 12)}…</code>
          </div>
          <h1>{runTitle(run)}</h1>
        </div>
        <Steps current={isOwn && !me.canApproveOwn ? 2 : 3} />
      </section>
      <LaterFailures
        run={run}
        onInclude={
          made === undefined || !canPlan || isBusy || 'problems' in read ? undefined : update
        }
      />
      {problem === undefined ? null : (
        <Note tone="bad" shape="fail" role="alert">
          {problem}
        </Note>
      )}
      <div className="columns run-columns">
        <div className="stack">
          <PreviewCard run={run} fields={fields} onChange={canPlan ? change : undefined} />
          <ProofCard run={run} />
          <FirstItems run={run} />
        </div>
        <aside className="stack">
          <PaceCard
            run={run}
            fields={fields}
            problems={problems}
            onChange={canPlan ? change : undefined}
          />
          <ChangeCard
            run={run}
            fields={fields}
            problem={problems.patch}
            onChange={canPlan ? change : undefined}
          />
          <Card title="Command line">
            <CardBody>
              <Equivalents
                cli={`redrive approve ${run.id}`}
                api={apiText(`POST /api/v1/replays/${run.id}/approve`, { hash: run.hash })}
              />
            </CardBody>
          </Card>
        </aside>
      </div>
      <footer className="dock">
        <div>
          <b>
            {countOf(size, 'message')} to {run.source}, {paceText(run, size)}
          </b>
          <p className="small quiet">
            {isOwn && !me.canApproveOwn ? 'Another person must approve it. ' : ''}
            {isExpired(run, now) ? EXPIRED : `The plan ${expiryText(run, now)}.`}
          </p>
        </div>
        <span className="grow" />
        {canPlan ? (
          <>
            <Button kind="ghost" onClick={() => setWithdrawing(true)}>
              Withdraw plan…
            </Button>
            <Button
              {...(isChanged ? { kind: 'primary' } : {})}
              disabledReason={noUpdate}
              onClick={update}
            >
              Update plan
            </Button>
          </>
        ) : null}
        <ApproveButton run={run} isChanged={isChanged} />
      </footer>
      {isWithdrawing ? (
        <RunDialog kind="withdraw" run={run} onClose={() => setWithdrawing(false)} />
      ) : null}
    </>
  )
}
