import { FAILURE_CLASSES } from '@redrive/api/enums'
import { useQuery } from '@tanstack/react-query'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Command } from '../../components/command.tsx'
import { sourcesQuery } from '../../data/queries.ts'
import type { FingerprintRule } from '../../data/settings.ts'
import { CONDITIONS, configText, ruleOf } from '../../words/fingerprints.ts'
import type { Draft } from '../../words/rule-draft.ts'

export interface RuleFormProps {
  readonly draft: Draft
  /** Why a dry run is not possible now. */
  readonly busy: string | undefined
  readonly onChange: (changes: Draft) => void
  readonly onTry: (rule: FingerprintRule) => void
}

/** A rule to try. Nothing is stored: the rule must be added to the config. */
export function RuleForm({ draft, busy, onChange, onTry }: RuleFormProps) {
  const made = ruleOf(draft)
  const problem = 'problem' in made ? made.problem : undefined
  const sources = useQuery(sourcesQuery).data ?? []
  return (
    <Card title="Try a rule" note="not stored">
      <CardBody>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault()
            if ('rule' in made && busy === undefined) onTry(made.rule)
          }}
        >
          <Choice
            label="Source"
            value={draft.source ?? ''}
            options={sources.map(({ source }) => source)}
            onChange={(source) => onChange({ source })}
          />
          <Choice
            label="Class"
            value={draft.class ?? ''}
            options={FAILURE_CLASSES}
            onChange={(value) => onChange({ class: value })}
          />
          {CONDITIONS.map(({ name, label, note }) => (
            <label key={name} className="field">
              <span>{label}</span>
              <input
                value={draft[name] ?? ''}
                maxLength={200}
                className="mono"
                autoComplete="off"
                placeholder={note}
                onChange={({ target }) => onChange({ [name]: target.value })}
              />
            </label>
          ))}
          <label className="field">
            <span>Then the group is</span>
            <input
              value={draft.group ?? ''}
              maxLength={200}
              autoComplete="off"
              placeholder="ledger lock timeouts"
              onChange={({ target }) => onChange({ group: target.value })}
            />
          </label>
          <Button type="submit" kind="primary" disabledReason={problem ?? busy}>
            Dry run
          </Button>
          {'rule' in made ? (
            <div className="stack" data-gap="tight">
              <p className="small quiet">
                Add this line to <code>fingerprints</code> in the config:
              </p>
              <Command text={configText(made.rule)} label="Copy the rule" />
            </div>
          ) : null}
        </form>
      </CardBody>
    </Card>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly options: readonly string[]
  readonly onChange: (value: string) => void
}

const Choice = ({ label, value, options, onChange }: ChoiceProps) => (
  <label className="field">
    <span>{label}</span>
    <select value={value} onChange={({ target }) => onChange(target.value)}>
      <option value="">Any</option>
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  </label>
)
