import type { Run } from '@redrive/api'
import { Link } from '@tanstack/react-router'
import { Button } from '../../components/button.tsx'
import { Card } from '../../components/card.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { Mark } from '../../components/icon.tsx'
import { Meter } from '../../components/meter.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import { useNow } from '../../clock.ts'
import { useLiveQuery } from '../../data/live.ts'
import { messagesQuery } from '../../data/queries.ts'
import { itemsQuery } from '../../data/runs.ts'
import { messagePath } from '../../paths.ts'
import { gateText, isOverride } from '../../words/gates.ts'
import { cappedText, countOf, countText } from '../../words/numbers.ts'
import { type PlanFields, proofTexts } from '../../words/plan.ts'
import { groupOfRun, sizeOf } from '../../words/runs.ts'
import { clockText } from '../../words/times.ts'
import '../../components/table.css'

export interface PreviewCardProps {
  readonly run: Run
  readonly fields: PlanFields
  /** Undefined: the caller cannot change the plan. */
  readonly onChange: ((fields: Partial<PlanFields>) => void) | undefined
}

/** How many messages are published, and why others are not. */
export function PreviewCard({ run, fields, onChange }: PreviewCardProps) {
  const ready = sizeOf(run)
  const skipped = Object.entries(run.skipped).toSorted(([, one], [, other]) => other - one)
  const total = ready + run.counts.skipped
  const toggle = (reason: string) => {
    if (!isOverride(reason)) return
    const overrides = fields.overrides.includes(reason)
      ? fields.overrides.filter((one) => one !== reason)
      : [...fields.overrides, reason]
    onChange?.({ overrides })
  }
  return (
    <Card title={`Preview of ${countOf(total, 'message')}`}>
      <div className="preview-meter">
        <Meter
          total={total}
          parts={[
            { tone: 'good', count: ready },
            { tone: 'idle', count: run.counts.skipped },
          ]}
        />
      </div>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Result</th>
            <th scope="col" className="num">
              Messages
            </th>
            <th scope="col" className="only-wide">
              Why
            </th>
            <th scope="col">
              <span className="visually-hidden">Action</span>
            </th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <td>
              <span className="row">
                <Mark shape="done" tone="good" />
                Ready
              </span>
            </td>
            <td className="num strong">{countText(ready)}</td>
            <td className="quiet only-wide">
              {run.isChanged ? 'Changed, and published' : 'Published'} to {run.source}
            </td>
            <td />
          </tr>
          {skipped.map(([reason, count]) => {
            const { title, why, shape } = gateText(reason)
            return (
              <tr key={reason}>
                <td>
                  <span className="row">
                    <Mark shape={shape} tone="idle" />
                    {title}
                  </span>
                </td>
                <td className="num strong">{countText(count)}</td>
                <td className="quiet only-wide">{why}</td>
                <td className="num">
                  {isOverride(reason) && onChange !== undefined ? (
                    <Button size="small" onClick={() => toggle(reason)}>
                      {fields.overrides.includes(reason)
                        ? 'Do not include'
                        : `Include ${countText(count)}…`}
                    </Button>
                  ) : null}
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </Card>
  )
}

/** What shows the outcomes of the messages. */
export function ProofCard({ run }: { readonly run: Run }) {
  const { isProven, text } = proofTexts(run)
  return (
    <Card title="Checks">
      <ul className="checks">
        <li>
          <Mark shape={isProven ? 'done' : 'warn'} tone={isProven ? 'good' : 'warn'} />
          {text}
        </li>
        <li>
          <Mark shape="done" tone="good" />
          {run.isChanged
            ? 'Changed messages get a new key that replaces the original.'
            : 'The same key: a consumer with an inbox drops duplicates.'}
        </li>
      </ul>
    </Card>
  )
}

/** 5 rows: a sample of what is published first. */
const FIRST = 5

export function FirstItems({ run }: { readonly run: Run }) {
  const found = useLiveQuery(itemsQuery(run.id, ['planned'], -1), 60_000)
  return (
    <Card title="First messages" note="oldest failure first">
      {found.data === undefined ? (
        found.error === null ? (
          <Skeleton rows={3} />
        ) : (
          <LoadError what="the messages" error={found.error} />
        )
      ) : (
        <table className="table">
          <tbody>
            {found.data.slice(0, FIRST).map(({ position, deadLetter, key, message }) => (
              <tr key={position}>
                <td className="faint run-place">{countText(position + 1)}</td>
                <td className="run-key">
                  <Link to={messagePath(deadLetter)} className="link mono cut">
                    <Peer text={key ?? deadLetter.slice(-8)} most={80} />
                  </Link>
                </td>
                <td className="run-what only-wide">
                  <span className="mono cut">
                    <Peer text={message ?? ''} most={300} />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  )
}

/** 50: enough to see that there are more. */
const LATER_MAX = 50

interface LaterFailuresProps {
  readonly run: Run
  readonly onInclude: (() => void) | undefined
}

/** Messages of the group that failed after the plan. They are not in it. */
export function LaterFailures({ run, onInclude }: LaterFailuresProps) {
  const now = useNow()
  const group = groupOfRun(run)
  const filter = `group:${group ?? ''} after:${new Date(run.plannedAt).toISOString()}`
  const found = useLiveQuery(
    { ...messagesQuery(filter, LATER_MAX), enabled: group !== undefined },
    5_000,
  )
  const count = found.data?.deadLetters.length ?? 0
  if (count === 0) return null
  return (
    <Note
      tone="run"
      shape="wait"
      role="status"
      action={
        onInclude === undefined ? undefined : (
          <Button size="small" onClick={onInclude}>
            Plan again to include them
          </Button>
        )
      }
    >
      <b>
        {cappedText(count, found.data?.nextCursor !== undefined)}{' '}
        {count === 1 ? 'message' : 'messages'} failed after {clockText(run.plannedAt, now, 'local')}
        .
      </b>{' '}
      They are not in this plan and stay open.
    </Note>
  )
}
