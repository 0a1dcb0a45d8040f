import { ApiError } from '@redrive/api'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useMemo, useState } from 'react'
import { Button, lookOf } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import { Time } from '../../components/time.tsx'
import { keepMade, planKeyName } from '../../data/drafts.ts'
import { keep, kept, readIds } from '../../data/kept.ts'
import { newestQuery } from '../../data/messages.ts'
import { fieldsOf } from '../../words/plan.ts'
import { type PlanRequest, planReplay } from '../../data/runs.ts'
import { messagePath, runPath } from '../../paths.ts'
import { Page } from '../../shell/page.tsx'
import { apiText, quoted } from '../../words/equivalents.ts'
import { cappedText, countText } from '../../words/numbers.ts'
import { Steps } from '../run/steps.tsx'
import '../../components/table.css'
import '../run/run.css'

const CRUMBS = [{ label: 'Replays', to: '/replays' }]

/** The start of the wizard. A group or ids are planned at once; a filter is shown first. */
export function NewReplay() {
  const { group, q, ids } = useSearch({ from: '/replays/new' })
  const [isPreview, setPreview] = useState(false)
  const selection = useMemo(() => selectionOf(group, q, ids), [group, q, ids])
  if (selection === undefined)
    return (
      <Page title="New replay" crumbs={CRUMBS} isHeading>
        <Card>
          <Empty
            title="Nothing is selected."
            action={
              <Link to="/messages" {...lookOf({ size: 'small' })}>
                Select messages
              </Link>
            }
          >
            A selection of many messages is kept only in the tab where it was made.
          </Empty>
        </Card>
      </Page>
    )
  if ('filter' in selection && !isPreview)
    return <Select filter={selection.filter} onPreview={() => setPreview(true)} />
  return <Planning selection={selection} />
}

function selectionOf(
  group: string | undefined,
  q: string | undefined,
  ids: string | undefined,
): PlanRequest['selection'] | undefined {
  if (group !== undefined) return { group }
  if (q !== undefined) return { filter: q }
  const list = ids === undefined ? undefined : readIds(ids)
  return list === undefined || list.length === 0 ? undefined : { ids: [...list] }
}

interface SelectProps {
  readonly filter: string
  readonly onPreview: () => void
}

/** Step 1 for a filter: what it matches now. The preview freezes it. */
function Select({ filter, onPreview }: SelectProps) {
  const found = useQuery(newestQuery(filter))
  const rows = found.data?.rows ?? []
  const sources = [...new Set(rows.map(({ source }) => source))]
  const schema = rows.filter((row) => row.class === 'schema').length
  const count = cappedText(rows.length, found.data?.isAll === false)
  const reason =
    found.data === undefined
      ? 'The messages are being loaded.'
      : rows.length === 0 && found.data.isAll
        ? 'No message matches.'
        : sources.length > 1
          ? 'A replay has one source. Add a word such as source:orders.'
          : undefined
  return (
    <Page title="New replay" crumbs={CRUMBS}>
      <section className="page-head run-head">
        <div>
          <h1>
            Replay {count} {rows.length === 1 ? 'message' : 'messages'}
            {sources.length === 1 ? ` to ${sources[0]}` : ''}
          </h1>
          <p className="quiet">
            Selected by the filter <code>{filter}</code>
          </p>
        </div>
        <Steps current={1} />
      </section>
      {schema > 0 ? (
        <Note tone="warn" shape="warn">
          <b>
            {countText(schema)} of the shown messages {schema === 1 ? 'does' : 'do'} not match the
            schema.
          </b>{' '}
          The same body fails again. Add a patch in the next step.
        </Note>
      ) : null}
      <Card
        title="Newest messages"
        note={count}
        action={
          <Link to="/messages" search={{ q: filter }} className="link small">
            Change in Messages
          </Link>
        }
      >
        {found.data === undefined ? (
          found.error === null ? (
            <Skeleton rows={5} />
          ) : (
            <LoadError
              what="the messages"
              error={found.error}
              onRetry={() => void found.refetch()}
            />
          )
        ) : (
          <table className="table">
            <tbody>
              {rows.slice(0, 10).map(({ id, key, message, lastFailedAt }) => (
                <tr key={id}>
                  <td className="run-key">
                    <Link to={messagePath(id)} className="link mono cut">
                      <Peer text={key} most={80} />
                    </Link>
                  </td>
                  <td className="run-what only-wide">
                    <span className="mono cut">
                      <Peer text={message} most={300} />
                    </span>
                  </td>
                  <td className="num quiet">
                    <Time at={lastFailedAt} isAgo />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Card>
      <Card title="Command line">
        <CardBody>
          <Equivalents
            cli={`redrive replay plan ${quoted(filter)}`}
            api={apiText('POST /api/v1/replays', { selection: { filter } })}
          />
        </CardBody>
      </Card>
      <footer className="dock">
        <div>
          <b>Nothing is published yet</b>
          <p className="small quiet">
            The preview checks each message and stores a fixed list. It publishes nothing.
          </p>
        </div>
        <span className="grow" />
        <Button kind="primary" disabledReason={reason} onClick={onPreview}>
          Preview
        </Button>
      </footer>
    </Page>
  )
}

/** 90 s: longer than the minute after which the server runs an interrupted request again. */
const IN_PROGRESS_TRIES = 90

/** Creates the plan, once per address, and continues at the address of its run. */
function Planning({ selection }: { readonly selection: PlanRequest['selection'] }) {
  const navigate = useNavigate()
  const name = planKeyName(selection)
  const planned = useQuery({
    queryKey: ['plan', name],
    queryFn: async () => {
      // A reload before the plan is shown repeats the key, so that it returns the same run. Its page forgets the key.
      const before = kept(name)
      const key = typeof before === 'string' ? before : crypto.randomUUID()
      keep(name, key)
      const run = await planReplay({ selection }, { key })
      keepMade(run.id, { selection, fields: fieldsOf(run) })
      return run.id
    },
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnMount: false,
    // After a reload, the server may still work on the first request.
    retry: (failures, error) =>
      failures < IN_PROGRESS_TRIES && error instanceof ApiError && error.code === 'in_progress',
    retryDelay: 1_000,
  })
  const id = planned.data
  useEffect(() => {
    if (id !== undefined) void navigate({ to: runPath(id), replace: true })
  }, [id, navigate])
  return (
    <Page title="New replay" crumbs={CRUMBS} isHeading>
      <Card>
        {planned.error === null ? (
          <>
            <CardBody>Checking each message. Nothing is published.</CardBody>
            <Skeleton rows={4} />
          </>
        ) : (
          <LoadError what="the plan" error={planned.error} onRetry={() => void planned.refetch()} />
        )}
      </Card>
    </Page>
  )
}
