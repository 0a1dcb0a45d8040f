import type { AuditEntry } from '@redrive/api'
import { Link } from '@tanstack/react-router'
import { Fragment } from 'react'
import { Facts } from '../../components/card.tsx'
import { Peer } from '../../components/peer.tsx'
import { Status, type StateName } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useMe } from '../../data/me.ts'
import { personName } from '../../data/permissions.ts'
import { useKeys } from '../../keys.ts'
import { parseSearch } from '../../search.ts'
import {
  type AuditRow,
  operationName,
  subjectPath,
  subjectText,
  viaText,
} from '../../words/audit.ts'
import { countText } from '../../words/numbers.ts'
import '../../components/table.css'

const STATES: Readonly<Record<AuditEntry['outcome'], StateName>> = {
  requested: 'no_result',
  done: 'done',
  refused: 'refused',
  denied: 'denied',
  failed: 'failed',
  viewed: 'viewed',
}

export interface AuditTableProps {
  readonly rows: readonly AuditRow[]
  /** Sequence of the open entry. */
  readonly open: string | undefined
  readonly onOpen: (sequence: string) => void
}

const COLUMNS = 7

/** Actions, newest first. `j` and `k` open the next one. */
export function AuditTable({ rows, open, onOpen }: AuditTableProps) {
  const at = rows.findIndex(({ entry }) => String(entry.sequence) === open)
  const move = (step: number) => {
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + step))]
    if (next !== undefined) onOpen(String(next.entry.sequence))
  }
  useKeys({
    j: () => move(1),
    k: () => move(at < 0 ? 1 : -1),
    ...(at < 0 ? {} : { Escape: () => onOpen('') }),
  })
  return (
    <table className="table audit-table">
      <thead>
        <tr>
          <th scope="col" className="num only-wide">
            Entry
          </th>
          <th scope="col">At</th>
          <th scope="col" className="only-wide">
            Person
          </th>
          <th scope="col">Action</th>
          <th scope="col">Outcome</th>
          <th scope="col" className="only-wide">
            Source
          </th>
          <th scope="col" className="only-wide">
            Subject
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const sequence = String(row.entry.sequence)
          return (
            <Fragment key={sequence}>
              <Row row={row} isOpen={sequence === open} onOpen={onOpen} />
              {sequence === open ? <DetailRow row={row} /> : null}
            </Fragment>
          )
        })}
      </tbody>
    </table>
  )
}

interface RowProps {
  readonly row: AuditRow
  readonly isOpen: boolean
  readonly onOpen: (sequence: string) => void
}

function Row({ row: { entry, hasNoResult }, isOpen, onOpen }: RowProps) {
  const sequence = String(entry.sequence)
  return (
    <tr data-selected={isOpen ? '' : undefined} data-focused={isOpen ? '' : undefined}>
      <td className="num faint mono only-wide">{countText(entry.sequence)}</td>
      <td className="quiet">
        <Time at={entry.at} />
      </td>
      <td className="only-wide cut">
        <Person entry={entry} />
      </td>
      <td>
        <button
          type="button"
          className="audit-open"
          aria-expanded={isOpen}
          onClick={() => onOpen(isOpen ? '' : sequence)}
        >
          {operationName(entry.operation)}
        </button>
        <div className="only-narrow small">
          <Person entry={entry} />
        </div>
      </td>
      <td>
        <Status state={STATES[entry.outcome]} />
      </td>
      <td className="quiet only-wide cut">{entry.source ?? '–'}</td>
      <td className="quiet mono only-wide cut" title={entry.subject}>
        <Peer text={subjectText(entry)} most={100} />
        {hasNoResult ? <span className="audit-warning"> may have been applied</span> : null}
      </td>
    </tr>
  )
}

function Person({ entry }: { readonly entry: AuditEntry }) {
  const me = useMe()
  const name = typeof entry.facts['name'] === 'string' ? entry.facts['name'] : undefined
  return (
    <>
      <Peer
        text={name ?? (entry.person === '' ? 'unknown' : personName(entry.person, me))}
        most={80}
      />{' '}
      <span className="faint small">{viaText(entry)}</span>
    </>
  )
}

function DetailRow({ row: { entry, requested } }: { readonly row: AuditRow }) {
  const { name: _, request, address, credential, ...facts } = entry.facts
  return (
    <tr data-selected="" className="audit-detail">
      <td colSpan={COLUMNS}>
        <div className="audit-facts">
          <pre>
            <Peer text={JSON.stringify(facts, undefined, 2)} most={10_000} />
          </pre>
          <Facts
            facts={[
              { name: 'Time', value: <code>{new Date(entry.at).toISOString()}</code> },
              { name: 'Operation', value: <code>{entry.operation}</code> },
              {
                name: 'Requested',
                value:
                  requested === undefined
                    ? undefined
                    : `entry ${countText(requested.sequence)}, ${countText(Math.max(0, entry.at - requested.at))} ms before`,
              },
              {
                name: 'Person',
                value: entry.person === '' ? undefined : <PeerCode text={entry.person} />,
              },
              { name: 'Credential', value: textFact(credential) },
              { name: 'Address', value: textFact(address) },
              { name: 'Request', value: textFact(request) },
              { name: 'Subject', value: <Subject entry={entry} /> },
              { name: 'Previous', value: <code>{entry.previous}</code> },
              { name: 'Hash', value: <code>{entry.hash}</code> },
            ]}
          />
        </div>
      </td>
    </tr>
  )
}

const PeerCode = ({ text }: { readonly text: string }) => (
  <code>
    <Peer text={text} most={500} />
  </code>
)

const textFact = (value: unknown) =>
  typeof value === 'string' ? <PeerCode text={value} /> : undefined

function Subject({ entry }: { readonly entry: AuditEntry }) {
  if (entry.subject === undefined) return <span className="faint">–</span>
  const [to, search = ''] = subjectPath(entry)?.split('?') ?? []
  if (to === undefined) return <PeerCode text={entry.subject} />
  return (
    <Link to={to} search={parseSearch(search)} className="link mono">
      {entry.subject}
    </Link>
  )
}
