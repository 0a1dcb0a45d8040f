import { Link } from '@tanstack/react-router'
import { Card } from '../../components/card.tsx'
import { Icon } from '../../components/icon.tsx'
import { Peer } from '../../components/peer.tsx'
import { Status } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import type { Source } from '../../data/queries.ts'
import { countText } from '../../words/numbers.ts'
import { brokerText } from '../../words/sources.ts'
import '../../components/table.css'

/** 6 sources: problems first, then those with the most open dead letters. */
const SHOWN_MAX = 6
const ORDER = ['unreachable', 'missing_queue', 'connected', 'not_checked']

export function SourcesCard({ sources }: { readonly sources: readonly Source[] }) {
  const rank = ({ state }: Source) => Math.min(ORDER.indexOf(state.status), 2)
  const shown = sources
    .toSorted((one, other) => rank(one) - rank(other) || other.open - one.open)
    .slice(0, SHOWN_MAX)
  const note =
    shown.length < sources.length
      ? `${shown.length} of ${sources.length}, most open first`
      : `${sources.length}`
  return (
    <Card
      title="Sources"
      note={note}
      action={
        <Link to="/sources" className="link small">
          All sources
        </Link>
      }
    >
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Source</th>
            <th scope="col" className="num">
              Open
            </th>
            <th scope="col" className="num only-wide">
              Oldest
            </th>
            <th scope="col">Ingest</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ source, broker, open, oldestAt, state: { status, problem } }) => (
            <tr key={source}>
              <td>
                <span className="row">
                  <Icon name="sources" className="faint" />
                  <b>
                    <Peer text={source} most={80} />
                  </b>
                  <span className="faint only-wide">{brokerText({ broker })}</span>
                </span>
              </td>
              <td className="num">{countText(open)}</td>
              <td className="num quiet only-wide">
                {oldestAt === undefined ? '–' : <Time at={oldestAt} />}
              </td>
              <td title={problem}>
                <Status state={status} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  )
}
