import { useNavigate, useSearch } from '@tanstack/react-router'
import { Card, CardBody } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Kbd } from '../../components/kbd.tsx'
import { Note } from '../../components/note.tsx'
import { Peer } from '../../components/peer.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { type Source, sourcesQuery } from '../../data/queries.ts'
import { useKeys } from '../../keys.ts'
import { Page } from '../../shell/page.tsx'
import { apiText } from '../../words/equivalents.ts'
import { countOf, countText } from '../../words/numbers.ts'
import { bySeverity, problemsOf } from '../../words/sources.ts'
import { SourceDetail } from './source-detail.tsx'
import { SourcesTable } from './sources-table.tsx'
import './sources.css'

/** Whether every source is ingested. The address has the source whose details are shown. */
export function Sources() {
  const found = useLiveQuery(sourcesQuery, 5_000)
  return (
    <Page title="Sources" isHeading>
      {found.data === undefined ? (
        <Card>
          {found.error === null ? (
            <Skeleton rows={6} />
          ) : (
            <LoadError what="sources" error={found.error} onRetry={() => void found.refetch()} />
          )}
        </Card>
      ) : found.data.length === 0 ? (
        <NoSources />
      ) : (
        <Loaded sources={bySeverity(found.data)} />
      )}
    </Page>
  )
}

function Loaded({ sources }: { readonly sources: readonly Source[] }) {
  const { source: name } = useSearch({ from: '/sources' })
  const navigate = useNavigate({ from: '/sources' })
  const chosen = sources.find(({ source }) => source === name)
  const at = sources.findIndex(({ source }) => source === name)
  const show = (source: string | undefined) =>
    void navigate({ search: source === undefined ? {} : { source }, replace: true })
  const move = (step: number) =>
    show(sources[Math.max(0, Math.min(sources.length - 1, at + step))]?.source)
  useKeys({
    j: () => move(1),
    k: () => move(at < 0 ? 1 : -1),
    ...(chosen === undefined
      ? {}
      : {
          Escape: () => show(undefined),
          s: () => void navigate({ to: '/sources/$source/policy', params: chosen }),
        }),
  })
  const open = sources.reduce((sum, one) => sum + one.open, 0)
  return (
    <>
      {problemsOf(sources).map(({ key, tone, title, detail }) => (
        <Note key={key} tone={tone} shape={tone === 'bad' ? 'fail' : 'warn'} role="status">
          <b>{title}</b>
          <p className="sources-problem">
            <Peer text={detail} />
          </p>
        </Note>
      ))}
      <Card
        footer={
          <>
            <span>
              {countOf(sources.length, 'source')}, {countText(open)} open dead letters
            </span>
            <span className="grow" />
            <span className="row only-wide">
              Move <Kbd keys="j k" /> Policy <Kbd keys="s" /> Close <Kbd keys="esc" />
            </span>
          </>
        }
      >
        <SourcesTable sources={sources} chosen={chosen?.source} />
      </Card>
      {chosen === undefined ? null : <SourceDetail key={chosen.source} source={chosen} />}
      {name !== undefined && chosen === undefined ? (
        <Note tone="idle" shape="unknown">
          There is no source <b>{name}</b>, or you have no permission to view it.
        </Note>
      ) : null}
    </>
  )
}

const NoSources = () => (
  <Card>
    <Empty title="No source yet.">
      A source appears after <code>redrive serve</code> with the role ingest has read its config for
      the first time. Add it under <code>sources</code> in the config of the server.
    </Empty>
    <CardBody>
      <Equivalents cli="redrive sources" api={apiText('GET /api/v1/sources')} />
    </CardBody>
  </Card>
)
