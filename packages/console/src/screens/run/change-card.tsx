import type { Run } from '@redrive/api'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { CodeField } from '../../components/code-field.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { useMe } from '../../data/me.ts'
import { can } from '../../data/permissions.ts'
import { runChangeQuery } from '../../data/runs.ts'
import { bytesOf } from '../../words/bytes.ts'
import { jsonLines } from '../../words/json-lines.ts'
import type { PlanFields } from '../../words/plan.ts'
import { HexView, JsonView, RawView } from '../message/payload-view.tsx'

export interface ChangeCardProps {
  readonly run: Run
  readonly fields: PlanFields
  readonly problem: string | undefined
  readonly onChange: ((fields: Partial<PlanFields>) => void) | undefined
}

/** What a run changes in each message, and a field for a patch. */
export function ChangeCard({ run, fields, problem, onChange }: ChangeCardProps) {
  const me = useMe()
  const canPatch =
    onChange !== undefined && can(me, 'edit', run.source) && can(me, 'view_payload', run.source)
  const help =
    problem ?? 'Messages that cannot be patched stay open. Update plan shows their number.'
  const [isEditing, setEditing] = useState(fields.patch !== '')
  return (
    <Card
      title="Change"
      action={
        canPatch && !isEditing && !run.isChanged ? (
          <Button size="small" onClick={() => setEditing(true)}>
            Add a patch…
          </Button>
        ) : undefined
      }
    >
      {run.isChanged ? <Change run={run} /> : null}
      {canPatch && isEditing ? (
        <CardBody>
          <div className="field">
            <span>JSON Patch for each body</span>
            <CodeField
              label="JSON Patch for each body"
              value={fields.patch}
              onChange={(patch) => onChange({ patch })}
              isJson
              isInvalid={problem !== undefined}
              description={help}
              hint={'[{ "op": "add", "path": "/currency", "value": "EUR" }]'}
            />
            <small data-problem={problem === undefined ? undefined : ''}>{help}</small>
          </div>
        </CardBody>
      ) : run.isChanged ? null : (
        <CardBody>None. Messages are replayed unchanged.</CardBody>
      )}
    </Card>
  )
}

/** The change of the plan. Reading it is written to the audit log, so it is loaded on request. */
export function Change({ run }: { readonly run: Run }) {
  const me = useMe()
  const [isShown, setShown] = useState(false)
  const found = useQuery({ ...runChangeQuery(run.id), enabled: isShown })
  if (!can(me, 'view_payload', run.source))
    return (
      <CardBody>Messages are changed. Permission view_payload is required to see how.</CardBody>
    )
  if (!isShown)
    return (
      <CardBody>
        <span className="row">
          Messages are changed.
          <Button size="small" onClick={() => setShown(true)}>
            Show the change
          </Button>
        </span>
      </CardBody>
    )
  if (found.error !== null) return <LoadError what="the change" error={found.error} />
  if (found.data === undefined) return <Skeleton rows={2} />
  const { kind, patch, text, bytes, isHidden } = found.data
  return (
    <>
      {patch === undefined ? null : <JsonView lines={jsonLines(patch)} />}
      {kind === 'edit' && text !== undefined ? <RawView text={text} /> : null}
      {kind === 'edit' && text === undefined && bytes !== undefined ? (
        <HexView bytes={bytesOf(bytes)} />
      ) : null}
      {kind === 'force' ? <CardBody>Each message gets a new key.</CardBody> : null}
      {isHidden ? (
        <CardBody>
          Some parts are hidden. Permission view_unmasked is required to see them.
        </CardBody>
      ) : null}
    </>
  )
}
