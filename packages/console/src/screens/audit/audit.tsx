import { ApiError } from '@redrive/api'
import { formatFilterWord } from '@redrive/api/filter'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { Card, CardBody } from '../../components/card.tsx'
import { Command, Equivalents } from '../../components/command.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { FilterBar } from '../../components/filter-bar.tsx'
import { auditQuery } from '../../data/audit.ts'
import { useMe } from '../../data/me.ts'
import { canEverywhere, can } from '../../data/permissions.ts'
import { type Me, sourcesQuery } from '../../data/queries.ts'
import { Page } from '../../shell/page.tsx'
import {
  AUDIT_KEYS,
  type AuditFilter,
  type AuditRow,
  auditRows,
  parseAudit,
} from '../../words/audit.ts'
import { apiText, quoted } from '../../words/equivalents.ts'
import { cappedText } from '../../words/numbers.ts'
import { AuditTable } from './audit-table.tsx'
import './audit.css'

/** Who did what. The address has the filter and the open entry. */
export function Audit() {
  const me = useMe()
  const navigate = useNavigate({ from: '/audit' })
  const { q = '', entry } = useSearch({ from: '/audit' })
  const [isVerifying, setVerifying] = useState(false)
  const parsed = parseAudit(q)
  const filter = 'query' in parsed ? parsed.query : {}
  const isAllowed = mayRead(me, filter)
  // A refused request would itself be an entry of the log.
  const found = useInfiniteQuery({ ...auditQuery(filter), enabled: isAllowed })
  const rows = auditRows(found.data?.pages.flatMap(({ entries }) => entries) ?? [])
  const change = (next: { readonly q?: string; readonly entry?: string }, replace = false) =>
    void navigate({ search: (search) => ({ ...search, ...next }), replace })
  return (
    <Page title="Audit" isHeading>
      <div className="audit-controls">
        <FilterBar
          label="Filter the audit log"
          placeholder="Filter by person, source, operation, subject"
          filter={q}
          keys={AUDIT_KEYS.map((key) => ({ ...key, values: valuesOf(rows, key.name) }))}
          onChange={(next) => change({ q: next, entry: '' })}
          problem={problemOf(parsed, found)}
        />
        <Button onClick={() => void found.refetch()}>Refresh</Button>
        <Button onClick={() => setVerifying(true)}>Verify…</Button>
      </div>
      {!isAllowed ? (
        <NotAllowed me={me} />
      ) : (
        <Card {...(rows.length === 0 ? {} : { footer: <Footer rows={rows} found={found} /> })}>
          {found.data === undefined ? (
            found.error === null ? (
              <Skeleton rows={8} />
            ) : (
              <LoadError
                what="the audit log"
                error={found.error}
                onRetry={() => void found.refetch()}
              />
            )
          ) : rows.length === 0 ? (
            <Empty
              title={q === '' ? 'The audit log is empty.' : 'No entry matches.'}
              {...(q === ''
                ? {}
                : {
                    action: (
                      <Button size="small" onClick={() => change({ q: '' })}>
                        Clear the filter
                      </Button>
                    ),
                  })}
            />
          ) : (
            <AuditTable rows={rows} open={entry} onOpen={(next) => change({ entry: next }, true)} />
          )}
        </Card>
      )}
      <Card title="Command line">
        <CardBody>
          <Equivalents cli={cliOf(filter)} api={apiText(`GET /api/v1/audit${searchOf(filter)}`)} />
        </CardBody>
      </Card>
      {isVerifying ? <VerifyDialog onClose={() => setVerifying(false)} /> : null}
    </Page>
  )
}

/** All entries need the permission on all sources, and those of a source only on this one. */
const mayRead = (me: Me, { source }: AuditFilter): boolean =>
  source === undefined ? canEverywhere(me, 'configure') : can(me, 'configure', source)

const cliOf = (filter: AuditFilter): string =>
  [
    'redrive audit list',
    ...entriesOf(filter).map(([name, value]) => `--${name} ${quoted(value)}`),
  ].join(' ')

function searchOf(filter: AuditFilter): string {
  const params = new URLSearchParams(entriesOf(filter))
  return params.size === 0 ? '' : `?${params.toString()}`
}

const entriesOf = (filter: AuditFilter) => Object.entries(filter) as [string, string][]

const problemOf = (
  parsed: ReturnType<typeof parseAudit>,
  { error, data }: { readonly error: Error | null; readonly data: unknown },
): string | undefined => {
  if ('problem' in parsed) return parsed.problem
  return error instanceof ApiError && data !== undefined ? error.problem.detail : undefined
}

/** Returns the values of the loaded entries, for the completion. */
const valuesOf = (rows: readonly AuditRow[], name: keyof AuditFilter): readonly string[] => [
  ...new Set(rows.flatMap(({ entry }) => entry[name] ?? [])),
]

interface FooterProps {
  readonly rows: readonly AuditRow[]
  readonly found: {
    readonly hasNextPage: boolean
    readonly isFetchingNextPage: boolean
    readonly fetchNextPage: () => unknown
  }
}

const Footer = ({ rows, found }: FooterProps) => (
  <>
    <span>
      {cappedText(rows.length, found.hasNextPage)} {rows.length === 1 ? 'action' : 'actions'}
    </span>
    <span className="grow" />
    {found.hasNextPage ? (
      <Button
        size="small"
        disabledReason={found.isFetchingNextPage ? 'Older entries are loading.' : undefined}
        onClick={() => void found.fetchNextPage()}
      >
        Older
      </Button>
    ) : null}
  </>
)

/** A caller who configures some sources chooses one. Others have no entries to see. */
function NotAllowed({ me }: { readonly me: Me }) {
  const own = (useQuery(sourcesQuery).data ?? []).filter(({ source }) =>
    can(me, 'configure', source),
  )
  return (
    <Card>
      <Empty title="Permission configure is required on all sources.">
        {own.length === 0 ? (
          'Ask an administrator for a role with it.'
        ) : (
          <>
            You can read the entries of these sources:{' '}
            {own.map(({ source }) => (
              <Link
                key={source}
                to="/audit"
                search={{ q: formatFilterWord('source', source) }}
                className="link audit-source"
              >
                {source}
              </Link>
            ))}
          </>
        )}
      </Empty>
    </Card>
  )
}

const VerifyDialog = ({ onClose }: { readonly onClose: () => void }) => (
  <Dialog
    title="Verify the audit log"
    onClose={onClose}
    footer={
      <>
        <span className="grow" />
        <Button onClick={onClose} data-first="">
          Close
        </Button>
      </>
    }
  >
    <div className="dialog-body">
      <p>
        Each entry contains the hash of the entry before it. The command reads the whole chain in
        the database and compares it with the signed checkpoints. It runs where the config of the
        server is, so that a changed server cannot report a changed log as valid.
      </p>
      <Command text="redrive audit verify --config redrive.config.yaml" label="Copy the command" />
    </div>
  </Dialog>
)
