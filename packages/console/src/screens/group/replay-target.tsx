import { Link } from '@tanstack/react-router'
import { Card, CardBody, Facts } from '../../components/card.tsx'
import { Peer } from '../../components/peer.tsx'
import { Status } from '../../components/status.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { sourcesQuery } from '../../data/queries.ts'
import { countText } from '../../words/numbers.ts'
import { brokerText } from '../../words/sources.ts'

/** Where a replay of the group is published, and whether its consumers keep up. */
export function ReplayTarget({ source }: { readonly source: string }) {
  const sources = useLiveQuery(sourcesQuery, 10_000).data ?? []
  const found = sources.find((one) => one.source === source)
  if (found === undefined) return null
  const { status, lag, depth } = found.state
  return (
    <Card
      title="Replay target"
      action={
        <Link to="/sources" search={{ source }} className="link small">
          Source
        </Link>
      }
    >
      <CardBody>
        <Facts
          facts={[
            { name: 'Source', value: <Peer text={source} most={80} /> },
            { name: 'Broker', value: brokerText(found) },
            { name: 'Ingest', value: <Status state={status} /> },
            {
              name: 'Consumer lag',
              value: lag === undefined ? undefined : `${countText(lag)} waiting`,
            },
            {
              name: 'Not ingested yet',
              value: depth === undefined ? undefined : countText(depth),
            },
            {
              name: 'In a replay',
              value: found.replaying === 0 ? undefined : countText(found.replaying),
            },
          ]}
        />
      </CardBody>
    </Card>
  )
}
