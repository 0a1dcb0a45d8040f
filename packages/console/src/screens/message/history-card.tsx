import type { DeadLetterDetail } from '@redrive/api'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { CommentForm } from '../../comments/comment-form.tsx'
import { Card } from '../../components/card.tsx'
import { LoadError } from '../../components/feedback.tsx'
import { Peer } from '../../components/peer.tsx'
import { STATES } from '../../components/status.tsx'
import { Timeline, type TimelineEvent } from '../../components/timeline.tsx'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import {
  commentMessage,
  type Cycles,
  cyclesQuery,
  messageCommentsQuery,
  messageReplaysQuery,
  type ReplayItems,
} from '../../data/messages.ts'
import { can, personName } from '../../data/permissions.ts'
import type { Comments, Me } from '../../data/queries.ts'
import { runPath } from '../../paths.ts'
import { failureTitle, foldFailures } from '../../words/history.ts'
import { reasonText } from '../../words/message-sentence.ts'
import { countOf } from '../../words/numbers.ts'
import { itemText } from '../../words/runs.ts'
import { durationText } from '../../words/times.ts'

/** What happened to the message, newest first, with a heading for each cycle. */
export function HistoryCard({ message }: { readonly message: DeadLetterDetail }) {
  const me = useMe()
  const { id, source, runs, cycle } = message
  // Not live: the body of an earlier cycle is read with it, which is an entry of the audit log.
  const cycles = useQuery({ ...cyclesQuery(id), refetchOnWindowFocus: false })
  const replays = useLiveQuery(messageReplaysQuery(id), 5_000)
  const comments = useLiveQuery(messageCommentsQuery(id), 10_000)
  const failed = [cycles, replays, comments].find(
    ({ error, data }) => error !== null && data === undefined,
  )
  return (
    <Card title="History" note={`${countOf(cycle, 'cycle')}, ${countOf(runs, 'run')}`}>
      {failed === undefined ? null : <LoadError what="the history" error={failed.error} />}
      {sectionsOf(message, cycles.data ?? [], replays.data ?? [], comments.data ?? [], me).map(
        ({ cycle: number, why, events }) => (
          <section key={number} aria-label={`Cycle ${number}`}>
            <h3 className="history-cycle">
              <b>Cycle {number}</b> <span className="quiet">{why}</span>
            </h3>
            <Timeline events={events} />
          </section>
        ),
      )}
      {can(me, 'triage', source) ? (
        <CommentForm onSave={(text, key) => commentMessage(id, text, key)} />
      ) : null}
    </Card>
  )
}

interface Section {
  readonly cycle: number
  readonly why: string
  readonly events: readonly TimelineEvent[]
}

function sectionsOf(
  message: DeadLetterDetail,
  cycles: Cycles,
  replays: ReplayItems,
  comments: Comments,
  me: Me,
): readonly Section[] {
  const current = { ...message, isCurrent: true }
  const all = [...cycles.map((one) => ({ ...one, isCurrent: false })), current]
  return all
    .toSorted((one, other) => other.cycle - one.cycle)
    .map(({ cycle, reason, history, isCurrent }) => ({
      cycle,
      why: reasonText(reason),
      events: [
        ...(isCurrent ? [...statusEvents(message, me), ...commentEvents(comments, me)] : []),
        ...replayEvents(replays.filter((item) => item.cycle === cycle)),
        ...failureEvents(history),
      ].toSorted((one, other) => other.at - one.at),
    }))
}

function statusEvents(
  { status, settledAt, settledBy, id }: DeadLetterDetail,
  me: Me,
): readonly TimelineEvent[] {
  if (settledAt === undefined) return []
  const { shape, tone, word } = STATES[status]
  const by = settledBy === undefined ? '' : ` by ${personName(settledBy, me)}`
  return [{ id: `${id} status`, at: settledAt, text: `${word}${by}`, mark: { shape, tone } }]
}

const commentEvents = (comments: Comments, me: Me): readonly TimelineEvent[] =>
  comments.map(({ id, author, text, writtenAt }) => ({
    id,
    at: writtenAt,
    text: <b>{personName(author, me)} commented</b>,
    detail: <Peer text={text} most={10_000} />,
  }))

const replayEvents = (items: ReplayItems): readonly TimelineEvent[] =>
  items
    .filter(({ publishedAt }) => publishedAt !== undefined)
    .map(({ run, replayId, state, publishedAt = 0, settledAt, reason }) => ({
      id: replayId,
      at: publishedAt,
      text: (
        <>
          Replayed in run{' '}
          <Link to={runPath(run)} className="link mono">
            {run.slice(-8)}
          </Link>
        </>
      ),
      detail: `${itemText(state)}${
        settledAt === undefined || publishedAt === 0
          ? ''
          : ` after ${durationText(settledAt - publishedAt)}`
      }${reason === undefined ? '' : ` (${reason})`}`,
      mark: { shape: 'run', tone: 'run' } as const,
    }))

const failureEvents = (history: DeadLetterDetail['history']): readonly TimelineEvent[] =>
  foldFailures(history).map((folded) => {
    const { to, count } = folded
    return {
      id: `${to.number} ${to.at}`,
      at: to.at,
      text: failureTitle(folded),
      detail: (
        <>
          {to.code === undefined ? null : (
            <code>
              <Peer text={to.code} most={80} />
            </code>
          )}{' '}
          <Peer text={to.message} most={500} />
          {count === 1 && !to.counted ? ' (not counted as an attempt)' : ''}
        </>
      ),
      mark: { shape: 'fail', tone: 'bad' } as const,
    }
  })
