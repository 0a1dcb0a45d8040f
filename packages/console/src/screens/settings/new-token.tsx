import type { Action } from '@redrive/api/enums'
import { ApiError } from '@redrive/api'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Checkbox } from '../../components/checkbox.tsx'
import { Command } from '../../components/command.tsx'
import { problemOf } from '../../components/feedback.tsx'
import { useMe } from '../../data/me.ts'
import { createToken, type NewToken } from '../../data/settings.ts'
import {
  ACTION_NOTES,
  DAYS_MAX,
  namesIn,
  ownActions,
  tokenCommand,
  type TokenForm,
  tokenProblem,
} from '../../words/access.ts'
import { useChange } from '../../dialogs/use-change.ts'

const EMPTY: TokenForm = { name: '', actions: ['view'], sources: '*', days: '30', isAgent: false }

/** Returns the reasons of the server, one per line. */
const textOf = (error: unknown): string => {
  const { detail } = problemOf(error)
  const problems = error instanceof ApiError ? (error.problem.problems ?? []) : []
  return [detail, ...problems].join('\n')
}

/** The form for a new token. It offers only permissions that the caller has. */
export function NewTokenForm({ onCreated }: { readonly onCreated: (token: NewToken) => void }) {
  const me = useMe()
  const [form, setForm] = useState(EMPTY)
  const { run, isBusy, problem } = useChange(() => setForm(EMPTY), textOf)
  const change = (changes: Partial<TokenForm>) => setForm({ ...form, ...changes })
  const missing = tokenProblem(form)
  const save = () =>
    run(async (key) => {
      const { name, actions, sources, days, isAgent } = form
      const body = { name: name.trim(), actions: [...actions], days: Number(days) }
      const created = await createToken(
        { ...body, sources: [...namesIn(sources)], ...(isAgent ? { isAgent } : {}) },
        key,
      )
      onCreated(created)
      return `Token ${created.name} created`
    })
  return (
    <Card title="New token">
      <CardBody>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault()
            if (missing === undefined && !isBusy) save()
          }}
        >
          <label className="field">
            <span>Name</span>
            <input
              value={form.name}
              maxLength={100}
              autoComplete="off"
              placeholder="nightly-report"
              onChange={({ target }) => change({ name: target.value })}
            />
          </label>
          <Permissions
            actions={ownActions(me)}
            chosen={form.actions}
            onChange={(actions) => change({ actions })}
          />
          <label className="field">
            <span>Sources</span>
            <input
              value={form.sources}
              className="mono"
              autoComplete="off"
              placeholder="orders*, payments"
              onChange={({ target }) => change({ sources: target.value })}
            />
          </label>
          <label className="field">
            <span>Expires after days (1–{DAYS_MAX})</span>
            <input
              value={form.days}
              inputMode="numeric"
              autoComplete="off"
              onChange={({ target }) => change({ days: target.value })}
            />
          </label>
          <label className="settings-check">
            <Checkbox
              label="An autonomous program uses it. It can never approve."
              isChecked={form.isAgent}
              onChange={(isAgent) => change({ isAgent })}
            />
            <span aria-hidden="true" className="small">
              An autonomous program uses it. It can never approve.
            </span>
          </label>
          {problem === undefined ? null : (
            <p role="alert" className="settings-problem small">
              {problem}
            </p>
          )}
          <Command text={tokenCommand(form)} label="Copy the command" />
          <Button
            type="submit"
            kind="primary"
            disabledReason={missing ?? (isBusy ? 'The token is being created.' : undefined)}
          >
            Create token
          </Button>
        </form>
      </CardBody>
    </Card>
  )
}

interface PermissionsProps {
  readonly actions: readonly Action[]
  readonly chosen: readonly Action[]
  readonly onChange: (chosen: readonly Action[]) => void
}

const Permissions = ({ actions, chosen, onChange }: PermissionsProps) => (
  <fieldset className="settings-permissions">
    <legend>Permissions</legend>
    {actions.map((action) => (
      <label key={action} className="settings-check">
        <Checkbox
          label={`${action}: ${ACTION_NOTES[action]}`}
          isChecked={chosen.includes(action)}
          onChange={(isChecked) =>
            onChange(isChecked ? [...chosen, action] : chosen.filter((one) => one !== action))
          }
        />
        <span aria-hidden="true" className="cut">
          {action} <span className="faint small">{ACTION_NOTES[action]}</span>
        </span>
      </label>
    ))}
  </fieldset>
)
