import type { Run } from '@redrive/api'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useNow } from '../../clock.ts'
import { BarChart } from '../../components/bar-chart.tsx'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { problemOf } from '../../components/feedback.tsx'
import { Icon } from '../../components/icon.tsx'
import { Kbd } from '../../components/kbd.tsx'
import { Meter } from '../../components/meter.tsx'
import { Note } from '../../components/note.tsx'
import { Pill } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { toast } from '../../components/toast.tsx'
import { useMe } from '../../data/me.ts'
import { canSomewhere, personName, refusal } from '../../data/permissions.ts'
import { changeRun, isOver, messageIds } from '../../data/runs.ts'
import { idsText } from '../../data/kept.ts'
import { useKeys } from '../../keys.ts'
import { createStore, useStore } from '../../store.ts'
import { apiText } from '../../words/equivalents.ts'
import { countOf, countText, shareText } from '../../words/numbers.ts'
import {
  queuedOf,
  ratesOf,
  runParts,
  type Sample,
  sentOf,
  settledOf,
} from '../../words/run-progress.ts'
import { outcomeText, runTitle, sizeOf } from '../../words/runs.ts'
import { durationText } from '../../words/times.ts'
import { ApproveButton } from './approve-button.tsx'
import { PaceFacts } from './pace-card.tsx'
import { RunDialog, type RunDialogKind } from './run-dialog.tsx'
import { RunItems } from './run-items.tsx'
import { Stages } from './stages.tsx'

/** An approved run: whether it works, and whether to pause it. */
export function RunView({ run }: { readonly run: Run }) {
  const me = useMe()
  const by = (person: string) => (person === me.person ? 'you' : personName(person, me))
  return (
    <>
      <section className="page-head run-head">
        <div>
          <div className="page-meta">
            <Pill state={run.state} />
            <span>
              planned by {by(run.plannedBy)}
              {run.approvedBy === undefined ? '' : `, approved by ${by(run.approvedBy)}`}
            </span>
            <code title={run.hash}>{run.hash.slice(0, 12)}…</code>
          </div>
          <h1>{runTitle(run)}</h1>
        </div>
        <Actions run={run} />
      </section>
      <PauseNote run={run} />
      <Progress run={run} />
      {run.state === 'running' ? <Rate run={run} /> : null}
      <RunItems run={run} />
      <div className="halves">
        <PaceFacts run={run} />
        <Card title="Command line">
          <CardBody>
            <Equivalents
              cli={`redrive replay watch ${run.id}`}
              api={apiText(`GET /api/v1/replays/${run.id}`)}
            />
          </CardBody>
        </Card>
      </div>
    </>
  )
}

function Actions({ run }: { readonly run: Run }) {
  const me = useMe()
  const [dialog, setDialog] = useState<RunDialogKind>()
  const [key, setKey] = useState(() => crypto.randomUUID())
  const reason = refusal(me, 'replay', run.source)
  const pause = () => {
    changeRun('pauseReplay', run.id, key)
      .catch((error: unknown) => toast({ text: problemOf(error).detail, tone: 'bad' }))
      // Pausing twice does no harm, but an old key could be refused.
      .finally(() => setKey(crypto.randomUUID()))
  }
  const canPause = run.state === 'running' && reason === undefined
  useKeys(canPause ? { p: pause } : {})
  if (isOver(run)) return <Again run={run} />
  // The server refuses to resume a run whose approval has ended.
  const approve = run.approval === undefined ? null : <ApproveButton run={run} />
  if (!canSomewhere(me, 'replay')) return approve
  return (
    <div className="run-actions">
      {approve !== null ? (
        approve
      ) : run.state === 'running' ? (
        <Button disabledReason={reason} onClick={pause}>
          <Icon name="pause" />
          Pause <Kbd keys="p" />
        </Button>
      ) : (
        <Button disabledReason={reason} onClick={() => setDialog('resume')}>
          <Icon name="play" />
          Resume…
        </Button>
      )}
      <Button disabledReason={reason} onClick={() => setDialog('cancel')}>
        Cancel…
      </Button>
      {dialog === undefined ? null : (
        <RunDialog kind={dialog} run={run} onClose={() => setDialog(undefined)} />
      )}
    </div>
  )
}

/** After the end: the messages that failed again can be replayed again. */
function Again({ run }: { readonly run: Run }) {
  const me = useMe()
  const navigate = useNavigate()
  const [isBusy, setBusy] = useState(false)
  const count = run.counts.failed_again
  if (count === 0 || !canSomewhere(me, 'replay')) return null
  const again = () => {
    setBusy(true)
    messageIds(run.id, ['failed_again'])
      .then((ids) => navigate({ to: '/replays/new', search: { ids: idsText(ids) } }))
      .catch((error: unknown) => toast({ text: problemOf(error).detail, tone: 'bad' }))
      .finally(() => setBusy(false))
  }
  return (
    <Button
      disabledReason={
        refusal(me, 'replay', run.source) ?? (isBusy ? 'The messages are being read.' : undefined)
      }
      onClick={again}
    >
      Replay the {countText(Math.min(count, 1_000))} refailed…
    </Button>
  )
}

function PauseNote({ run }: { readonly run: Run }) {
  if (run.state !== 'paused') return null
  const sent = sentOf(run)
  return (
    <Note tone="warn" shape="pause" role="alert">
      <b>{sentence(run.pauseReason ?? 'paused')}</b>{' '}
      {run.pausedAt === undefined ? null : (
        <>
          Publishing stopped <Time at={run.pausedAt} isAgo />.
        </>
      )}
      {sent > 0 ? ` ${countOf(sent, 'published message')} have no outcome yet.` : ''}
      {run.approval?.endedBecause === undefined ? null : <p>{run.approval.endedBecause}</p>}
    </Note>
  )
}

const sentence = (text: string) =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`

const LEGEND = [
  ['Resolved', 'good', 'resolved'],
  ['Not returned', 'good', 'not_returned'],
  ['Refailed', 'bad', 'failed_again'],
  ['No confirmation', 'warn', 'unknown'],
  ['Expired', 'idle', 'expired'],
  ['Cancelled', 'idle', 'cancelled'],
] as const

function Progress({ run }: { readonly run: Run }) {
  const total = sizeOf(run)
  const settled = settledOf(run)
  const queued = queuedOf(run)
  const sent = sentOf(run)
  return (
    <Card>
      <div className="progress">
        <p className="progress-line">
          <b className="progress-count">{countText(settled)}</b> of {countText(total)} have an
          outcome{total === 0 ? '' : `, ${shareText(settled / total)}`}
          <span className="grow" />
          <TimeLeft run={run} />
        </p>
        <Meter total={total} parts={runParts(run)} />
        <ul className="legend">
          {LEGEND.filter(([, , state]) => run.counts[state] > 0).map(([name, tone, state]) => (
            <li key={state}>
              <i data-tone={tone} />
              {name} <b>{countText(run.counts[state])}</b>
            </li>
          ))}
          {sent > 0 ? (
            <li>
              <i data-tone="run" data-open="" />
              Published, no outcome yet <b>{countText(sent)}</b>
            </li>
          ) : null}
          {queued > 0 ? (
            <li>
              <i />
              Queued <b>{countText(queued)}</b>
            </li>
          ) : null}
        </ul>
        {isOver(run) ? null : <Stages run={run} />}
        <p className="visually-hidden" role="status">
          {run.state === 'done' ? `The run is done: ${outcomeText(run)}.` : ''}
        </p>
      </div>
    </Card>
  )
}

function TimeLeft({ run }: { readonly run: Run }) {
  const now = useNow()
  const { ratePerSecond } = run.options
  const since = run.approvedAt ?? run.plannedAt
  if (run.state === 'done' || run.state === 'cancelled')
    return (
      <span className="quiet">
        {run.state === 'done' ? 'done' : 'cancelled'} after{' '}
        {durationText((run.endedAt ?? now) - since)}
      </span>
    )
  if (run.state !== 'running') return null
  const queued = queuedOf(run)
  const left = (queued / ratePerSecond) * 1_000
  return (
    <span className="quiet">
      {queued === 0
        ? 'waiting for outcomes'
        : `at most ${ratePerSecond} per second, ${left < 1_000 ? 'less than 1\u00A0s' : `about ${durationText(left)}`} to publish`}
    </span>
  )
}

/** 200 samples: more than two minutes. */
const SAMPLES_MAX = 200

/** Outcomes per second while this page is open. */
function Rate({ run }: { readonly run: Run }) {
  const settled = settledOf(run)
  const [seen] = useState(() => createStore<readonly Sample[]>([]))
  const samples = useStore(seen)
  useEffect(() => {
    seen.set([...seen.get().slice(-SAMPLES_MAX), { at: Date.now(), settled }])
  }, [seen, settled])
  const now = useNow()
  const timeOf = (at: number) => new Date(at).toLocaleTimeString('en-GB')
  return (
    <Card title="Outcomes per second" note="while this page is open">
      <CardBody>
        <BarChart
          label="Outcomes per second"
          bars={ratesOf(samples, now)}
          name="transient"
          timeOf={timeOf}
          height={120}
        />
      </CardBody>
    </Card>
  )
}
