import { useId } from 'react'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Kbd } from '../../components/kbd.tsx'
import { Segments } from '../../components/tabs.tsx'
import { COMPARED, OUTAGES } from '../../address-values.ts'
import {
  COMPARED_TITLES,
  type ComparedName,
  OUTAGE_MS,
  type Scenario,
  spanText,
} from '../../words/scenario.ts'

const KINDS = [
  { name: 'refuse', label: 'Refuses calls' },
  { name: 'brown-out', label: 'A fifth of capacity' },
] as const

export interface ScenarioFormProps {
  readonly scenario: Scenario
  /** Why the fields cannot be simulated. */
  readonly problem: string | undefined
  readonly onChange: (changes: Partial<Scenario>) => void
  readonly onSimulate: () => void
}

/** The policy and the outage to simulate. */
export function ScenarioForm({ scenario, problem, onChange, onSimulate }: ScenarioFormProps) {
  const id = useId()
  return (
    <Card title="Scenario">
      <CardBody>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault()
            if (problem === undefined) onSimulate()
          }}
        >
          <div className="field">
            <span>Outage</span>
            <div className="policy-choices">
              <Segments
                label="Length of the outage"
                options={OUTAGES.map((name) => ({ name, label: spanText(OUTAGE_MS[name]) }))}
                current={scenario.outage}
                onChange={(outage) => onChange({ outage })}
              />
              <Segments
                label="Kind of outage"
                options={KINDS}
                current={scenario.kind}
                onChange={(kind) => onChange({ kind })}
              />
            </div>
          </div>
          <div className="policy-pair">
            <NumberField
              label="Arrivals per second"
              value={scenario.arrivals}
              onChange={(arrivals) => onChange({ arrivals })}
            />
            <NumberField
              label="Capacity per second"
              value={scenario.capacity}
              onChange={(capacity) => onChange({ capacity })}
            />
          </div>
          <NumberField
            label="In flight, maximum over 10 processes"
            value={scenario.inFlight}
            onChange={(inFlight) => onChange({ inFlight })}
          />
          <label className="field">
            <span>Compare with</span>
            <select
              value={scenario.compare}
              onChange={({ target }) => onChange({ compare: target.value as ComparedName })}
            >
              {COMPARED.map((name) => (
                <option key={name} value={name}>
                  {COMPARED_TITLES[name]}
                </option>
              ))}
            </select>
          </label>
          <div className="field">
            <label htmlFor={`${id}-policy`}>Policy, options of consume() as JSON</label>
            <textarea
              id={`${id}-policy`}
              className="input mono"
              rows={5}
              spellCheck={false}
              maxLength={POLICY_MAX}
              placeholder={'{ "retry": { "attempts": 8 } }'}
              aria-describedby={`${id}-help`}
              value={scenario.policy}
              onChange={({ target }) => onChange({ policy: target.value })}
            />
            <small id={`${id}-help`}>
              Consumers do not report their policy. Empty: the default policy.
            </small>
          </div>
          {problem === undefined ? null : (
            <p role="alert" className="policy-problem">
              {problem}
            </p>
          )}
          <Button type="submit" kind="primary" disabledReason={problem}>
            Simulate <Kbd keys="s" />
          </Button>
        </form>
      </CardBody>
    </Card>
  )
}

/** 2,000 characters: the policy is a part of the address, and proxies limit its length. */
const POLICY_MAX = 2_000

interface NumberFieldProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
}

const NumberField = ({ label, value, onChange }: NumberFieldProps) => (
  <label className="field">
    <span>{label}</span>
    <input
      inputMode="numeric"
      autoComplete="off"
      value={value}
      onChange={({ target }) => onChange(target.value)}
    />
  </label>
)
