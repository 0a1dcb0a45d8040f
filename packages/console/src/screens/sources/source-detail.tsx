import { formatFilterWord } from '@redrive/api/filter'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Card, CardBody, Facts } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { Empty, LoadError, Skeleton } from '../../components/feedback.tsx'
import { Status, Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import type { Source } from '../../data/queries.ts'
import { expiredQuery } from '../../data/sources.ts'
import { apiText } from '../../words/equivalents.ts'
import { countText } from '../../words/numbers.ts'
import { expiredText } from '../../words/sources.ts'
import '../../components/table.css'

/** Everything that is known about one source. */
export const SourceDetail = ({ source }: { readonly source: Source }) => (
  <div className="halves">
    <div className="stack">
      <Numbers source={source} />
      <Expired source={source.source} />
    </div>
    <div className="stack">
      <Processes source={source} />
      <Card title="Command line">
        <CardBody>
          <Equivalents cli="redrive sources" api={apiText('GET /api/v1/sources')} />
        </CardBody>
      </Card>
    </div>
  </div>
)

function Numbers({ source: one }: { readonly source: Source }) {
  const { source, open, replaying, undecided, count, expiring, nextExpiryAt, setAside } = one
  const q = formatFilterWord('source', source)
  return (
    <Card
      title={source}
      action={
        <span className="row">
          <Link to="/sources/$source/policy" params={{ source }} className="link small">
            Simulate its policy
          </Link>
          <Link to="/groups" search={{ q }} className="link small">
            Open its groups
          </Link>
        </span>
      }
    >
      <CardBody>
        <Facts
          facts={[
            { name: 'Open', value: countText(open) },
            { name: 'In a replay', value: replaying === 0 ? undefined : countText(replaying) },
            {
              name: 'No outcome',
              value: undecided === 0 ? undefined : `${countText(undecided)} unconfirmed replays`,
            },
            { name: 'In total', value: countText(count) },
            {
              name: 'Set aside',
              value:
                setAside === 0 ? (
                  'none'
                ) : (
                  <Link to="/sources/set-aside" search={{ q }} className="link">
                    {countText(setAside)}, show
                  </Link>
                ),
            },
            {
              name: 'Expiring soon',
              value:
                expiring === 0 ? (
                  'none'
                ) : (
                  <>
                    {countText(expiring)}
                    {nextExpiryAt === undefined ? null : (
                      <>
                        , the first on {new Date(nextExpiryAt).toISOString().slice(0, 10)}
                        {'. Replay or discard them.'}
                      </>
                    )}
                  </>
                ),
            },
            {
              name: 'Permissions',
              value: (
                <span className="sources-tags">
                  {one.permissions.map((name) => (
                    <Tag key={name} text={name} />
                  ))}
                </span>
              ),
            },
          ]}
        />
      </CardBody>
    </Card>
  )
}

/** The processes that read the source. Without one, its dead letters stay in the broker. */
const Processes = ({ source: { state } }: { readonly source: Source }) => (
  <Card title="Server processes" note={countText(state.processes.length)}>
    {state.processes.length === 0 ? (
      <Empty title="No process checks this source." />
    ) : (
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Process</th>
            <th scope="col">Ingest</th>
            <th scope="col" className="num">
              Checked
            </th>
          </tr>
        </thead>
        <tbody>
          {state.processes.map(({ process, status, checkedAt }) => (
            <tr key={process}>
              <td className="mono">{process}</td>
              <td>
                <Status state={status} />
              </td>
              <td className="num faint">
                <Time at={checkedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    )}
  </Card>
)

/** What retention deleted. It changes once a day, so it is not live. */
function Expired({ source }: { readonly source: string }) {
  const days = useQuery(expiredQuery(source))
  return (
    <Card title="Expired" note="deleted by retention, by day of the first failure">
      {days.data === undefined ? (
        days.error === null ? (
          <Skeleton rows={1} />
        ) : (
          <LoadError
            what="expired dead letters"
            error={days.error}
            onRetry={() => void days.refetch()}
          />
        )
      ) : days.data.length === 0 ? (
        <Empty title="Nothing has expired." />
      ) : (
        <table className="table">
          <tbody>
            {days.data.map(({ day, byStatus }) => (
              <tr key={day}>
                <td className="nowrap">{day}</td>
                <td className="quiet">{expiredText(byStatus)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  )
}
