import { ApiError } from '@redrive/api'
import { SET_ASIDE_STATUSES } from '@redrive/api/enums'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card } from '../../components/card.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { FilterBar } from '../../components/filter-bar.tsx'
import { Icon } from '../../components/icon.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { sourcesQuery } from '../../data/queries.ts'
import { SET_ASIDE_MAX, type SetAsideAction, setAsideQuery } from '../../data/sources.ts'
import { Page } from '../../shell/page.tsx'
import { cappedText } from '../../words/numbers.ts'
import { parseSetAside, SET_ASIDE_KEYS } from '../../words/set-aside.ts'
import { SetAsideDetail } from './set-aside-detail.tsx'
import { SetAsideDialog } from './set-aside-dialogs.tsx'
import { SetAsideBulk, SetAsideList } from './set-aside-list.tsx'
import './set-aside.css'

const CRUMBS = [{ label: 'Sources', to: '/sources' }]

/** Messages that could not be catalogued. The address has the filter and the shown message. */
export function SetAside() {
  const navigate = useNavigate({ from: '/sources/set-aside' })
  const { q = '', entry } = useSearch({ from: '/sources/set-aside' })
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [action, setAction] = useState<SetAsideAction>()
  const parsed = parseSetAside(q)
  const found = useLiveQuery(setAsideQuery('query' in parsed ? parsed.query : {}), 5_000)
  const messages = found.data?.messages ?? []
  const isCapped = found.data?.nextCursor !== undefined
  const shown = entry ?? messages[0]?.id
  const chosen = messages.filter(({ id }) => selected.has(id))
  const change = (next: { readonly q?: string; readonly entry?: string }, replace = false) =>
    void navigate({ search: (search) => ({ ...search, ...next }), replace })
  return (
    <Page title="Set aside" crumbs={CRUMBS}>
      <div>
        <h1 className="set-aside-title">{titleOf(q, found.data && messages.length, isCapped)}</h1>
        <p className="quiet">
          Ingest could not catalog them. They are stored whole, and ingest of the other messages
          continues.
        </p>
      </div>
      <Filter
        q={q}
        problem={problemOf(parsed, found)}
        onChange={(next) => change({ q: next, entry: '' })}
      />
      <div className="set-aside" data-open={entry === undefined ? undefined : ''}>
        <Card
          title="Newest first"
          note={cappedText(messages.length, isCapped)}
          className="set-aside-list"
          {...(isCapped
            ? {
                footer: `The list shows at most ${SET_ASIDE_MAX} messages. Use the filter, or replay or discard the newest.`,
              }
            : {})}
        >
          {found.data === undefined ? (
            found.error === null ? (
              <Skeleton rows={5} />
            ) : (
              <LoadError
                what="set-aside messages"
                error={found.error}
                onRetry={() => void found.refetch()}
              />
            )
          ) : messages.length === 0 ? (
            <None q={q} onClear={() => change({ q: '', entry: '' })} />
          ) : (
            <SetAsideList
              messages={messages}
              shown={shown}
              selected={selected}
              onSelect={setSelected}
              onShow={(id) => change({ entry: id }, entry !== undefined)}
            />
          )}
        </Card>
        <div className="set-aside-detail">
          <Link
            to="/sources/set-aside"
            search={q === '' ? {} : { q }}
            className="only-narrow link set-aside-back"
          >
            <Icon name="left" /> All set-aside messages
          </Link>
          {shown === undefined ? null : <SetAsideDetail key={shown} id={shown} />}
        </div>
      </div>
      {chosen.length === 0 ? null : (
        <SetAsideBulk
          messages={chosen}
          onAction={setAction}
          onClear={() => setSelected(new Set())}
        />
      )}
      {action === undefined ? null : (
        <SetAsideDialog
          action={action}
          messages={chosen}
          onClose={() => setAction(undefined)}
          onDone={() => setSelected(new Set())}
        />
      )}
    </Page>
  )
}

const titleOf = (q: string, count: number | undefined, isCapped: boolean): string => {
  if (count === undefined) return 'Set-aside messages'
  if (q !== '')
    return count === 1
      ? '1 set-aside message matches'
      : `${cappedText(count, isCapped)} set-aside messages match`
  if (count === 0) return 'No message is set aside'
  return count === 1
    ? '1 message was set aside'
    : `${cappedText(count, isCapped)} messages were set aside`
}

const problemOf = (
  parsed: ReturnType<typeof parseSetAside>,
  { error, data }: { readonly error: Error | null; readonly data: unknown },
): string | undefined =>
  'problem' in parsed
    ? parsed.problem
    : error instanceof ApiError && data !== undefined
      ? error.problem.detail
      : undefined

interface FilterProps {
  readonly q: string
  readonly problem: string | undefined
  readonly onChange: (q: string) => void
}

function Filter({ q, problem, onChange }: FilterProps) {
  const sources = useLiveQuery(sourcesQuery, 10_000).data ?? []
  const values = {
    source: sources.filter(({ setAside }) => setAside > 0).map(({ source }) => source),
    status: SET_ASIDE_STATUSES,
  }
  return (
    <FilterBar
      label="Filter set-aside messages"
      placeholder="Filter by source, status"
      filter={q}
      keys={SET_ASIDE_KEYS.map((key) => ({ ...key, values: values[key.name] }))}
      onChange={onChange}
      problem={problem}
    />
  )
}

const None = ({ q, onClear }: { readonly q: string; readonly onClear: () => void }) =>
  q === '' ? (
    <Empty title="Nothing to decide.">
      Replayed and discarded messages are listed with <code>status:replayed</code> and{' '}
      <code>status:discarded</code>.
    </Empty>
  ) : (
    <Empty
      title="No message matches."
      action={
        <Button size="small" onClick={onClear}>
          Clear the filter
        </Button>
      }
    >
      The filter is <code>{q}</code>.
    </Empty>
  )
