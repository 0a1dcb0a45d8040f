import type { Run } from '@redrive/api'
import { useId } from 'react'
import { Card, CardBody, Facts } from '../../components/card.tsx'
import { Peer } from '../../components/peer.tsx'
import type { PlanFields } from '../../words/plan.ts'
import { percentText } from '../../words/numbers.ts'
import { durationText } from '../../words/times.ts'

type TextField = 'canary' | 'rate' | 'failurePercent' | 'timeoutMinutes'

interface Row {
  readonly name: TextField
  readonly label: string
  readonly unit: string
  readonly help: string
}

const ROWS: readonly Row[] = [
  {
    name: 'canary',
    label: 'Canary',
    unit: 'messages',
    help: 'A stage starts when the previous one has all outcomes. The rest follows.',
  },
  { name: 'rate', label: 'Rate', unit: 'per second', help: 'All replays to this source share it.' },
  {
    name: 'failurePercent',
    label: 'Pause when',
    unit: '% fail again',
    help: 'Of the latest messages with an outcome.',
  },
  {
    name: 'timeoutMinutes',
    label: 'Wait for an outcome',
    unit: 'min',
    help: 'Afterwards the outcome is unknown, or the message counts as not returned.',
  },
]

export interface PaceCardProps {
  readonly run: Run
  readonly fields: PlanFields
  readonly problems: Readonly<Partial<Record<keyof PlanFields, string>>>
  readonly onChange: ((fields: Partial<PlanFields>) => void) | undefined
}

/** How fast a run publishes and when it stops by itself. Fields for those who can change it, facts for others. */
export function PaceCard({ run, fields, problems, onChange }: PaceCardProps) {
  if (onChange === undefined) return <PaceFacts run={run} />
  return (
    <Card title="Pace">
      <CardBody>
        <div className="stack">
          {ROWS.map((row) => (
            <NumberField
              key={row.name}
              {...row}
              value={fields[row.name]}
              problem={problems[row.name]}
              onChange={(value) => onChange({ [row.name]: value })}
            />
          ))}
          <label className="field">
            <span>Note for the approver</span>
            <textarea
              className="input"
              rows={3}
              maxLength={2_000}
              value={fields.note}
              onChange={({ target }) => onChange({ note: target.value })}
            />
          </label>
        </div>
      </CardBody>
    </Card>
  )
}

interface NumberFieldProps extends Row {
  readonly value: string
  readonly problem: string | undefined
  readonly onChange: (value: string) => void
}

function NumberField({ label, unit, help, value, problem, onChange }: NumberFieldProps) {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <div className="row">
        <input
          id={id}
          className="input pace-input"
          inputMode="decimal"
          autoComplete="off"
          value={value}
          aria-describedby={`${id}-help`}
          aria-invalid={problem === undefined ? undefined : true}
          onChange={({ target }) => onChange(target.value)}
        />
        <span className="quiet">{unit}</span>
      </div>
      <small id={`${id}-help`} data-problem={problem === undefined ? undefined : ''}>
        {problem ?? help}
      </small>
    </div>
  )
}

export const PaceFacts = ({ run: { options, note } }: { readonly run: Run }) => (
  <Card title="Pace">
    <CardBody>
      <Facts
        facts={[
          { name: 'Canary', value: options.canary.join(' → ') || 'none' },
          { name: 'Rate', value: `${options.ratePerSecond} per second` },
          {
            name: 'Pauses when',
            value: `${percentText(options.maxFailureRatio)} fail again`,
          },
          { name: 'Waits', value: `${durationText(options.outcomeTimeoutMs)} for an outcome` },
          { name: 'Note', value: note === '' ? undefined : <Peer text={note} /> },
        ]}
      />
    </CardBody>
  </Card>
)
