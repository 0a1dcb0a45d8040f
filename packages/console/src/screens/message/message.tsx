import { ApiError, type DeadLetterDetail } from '@redrive/api'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Card, CardBody, Facts } from '../../components/card.tsx'
import { Equivalents } from '../../components/command.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { Peer } from '../../components/peer.tsx'
import { Time } from '../../components/time.tsx'
import { messageQuery } from '../../data/messages.ts'
import { groupPath } from '../../paths.ts'
import { Page } from '../../shell/page.tsx'
import { apiText } from '../../words/equivalents.ts'
import type { BodyView } from '../../address-values.ts'
import { countText } from '../../words/numbers.ts'
import { MASKED, valueText } from '../../words/values.ts'
import { NotFound } from '../not-found.tsx'
import { HistoryCard } from './history-card.tsx'
import { MessageHead } from './message-head.tsx'
import { PayloadCard } from './payload-card.tsx'
import './message.css'

const CRUMBS = [{ label: 'Messages', to: '/messages' }]

/** One message: what happened to it, and what to do. */
export function MessageScreen() {
  const { id } = useParams({ from: '/messages/$id' })
  // Each read of a body is an entry of the audit log, so it is not repeated. A change of the user loads it again.
  const found = useQuery({ ...messageQuery(id), refetchOnWindowFocus: false })
  const isMissing =
    found.error instanceof ApiError && ['not_found', 'invalid'].includes(found.error.code)
  if (isMissing) return <NotFound />
  if (found.data === undefined) {
    return (
      <Page title="Message" crumbs={CRUMBS} isHeading>
        <Card>
          {found.error === null ? (
            <Skeleton rows={8} />
          ) : (
            <LoadError
              what="the message"
              error={found.error}
              onRetry={() => void found.refetch()}
            />
          )}
        </Card>
      </Page>
    )
  }
  return <Loaded key={id} message={found.data.message} />
}

function Loaded({ message }: { readonly message: DeadLetterDetail }) {
  const navigate = useNavigate({ from: '/messages/$id' })
  const { body = 'pretty', from } = useSearch({ from: '/messages/$id' })
  const view = (next: BodyView) =>
    void navigate({ search: (search) => ({ ...search, body: next }), replace: true })
  const crumbs = [
    { label: 'Groups', to: '/groups' },
    { label: message.group.slice(-8), to: groupPath(message.group) },
  ]
  return (
    <Page title={message.id.slice(-8)} crumbs={crumbs}>
      <MessageHead message={message} from={from} />
      <div className="columns message-columns">
        <div className="stack">
          <PayloadCard message={message} view={body} onView={view} />
          <Headers message={message} />
          <Card title="Command line">
            <CardBody>
              <Equivalents
                cli={`redrive messages show ${message.id}`}
                api={apiText(`GET /api/v1/dead-letters/${message.id}`)}
              />
            </CardBody>
          </Card>
        </div>
        <aside className="stack">
          <HistoryCard message={message} />
          <Identity message={message} />
        </aside>
      </div>
    </Page>
  )
}

function Headers({ message }: { readonly message: DeadLetterDetail }) {
  const headers = Object.entries(message.headers)
  if (headers.length === 0) return null
  return (
    <Card title="Headers" note={countText(headers.length)}>
      <table className="table message-headers">
        <tbody>
          {headers.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">
                <Peer text={name} most={200} />
              </th>
              <td>
                {value === MASKED ? (
                  <span className="masked">masked</span>
                ) : (
                  <Peer text={valueText(value)} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  )
}

const Identity = ({ message }: { readonly message: DeadLetterDetail }) => {
  const mono = (text: string | undefined) =>
    text === undefined ? undefined : (
      <code>
        <Peer text={text} most={200} />
      </code>
    )
  return (
    <Card title="Identity">
      <CardBody>
        <Facts
          facts={[
            { name: 'Id', value: mono(message.id) },
            { name: 'Message id', value: mono(message.messageId) },
            { name: 'Key', value: mono(message.key) },
            { name: 'Lane', value: mono(message.lane) },
            { name: 'Origin', value: mono(message.origin) },
            { name: 'First failed', value: <Time at={message.firstFailedAt} isAgo /> },
            { name: 'Last failed', value: <Time at={message.lastFailedAt} isAgo /> },
            { name: 'Ingested', value: <Time at={message.ingestedAt} isAgo /> },
            {
              name: 'Attempts',
              value:
                message.runs === message.attempts
                  ? countText(message.attempts)
                  : `${countText(message.attempts)} of ${countText(message.runs)} runs`,
            },
          ]}
        />
      </CardBody>
    </Card>
  )
}
