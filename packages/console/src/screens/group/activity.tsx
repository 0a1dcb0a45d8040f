import type { Group } from '@redrive/api'
import { CommentForm } from '../../comments/comment-form.tsx'
import { Card } from '../../components/card.tsx'
import { LoadError } from '../../components/feedback.tsx'
import { Peer } from '../../components/peer.tsx'
import { Timeline, type TimelineEvent } from '../../components/timeline.tsx'
import { commentGroup } from '../../data/group-actions.ts'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import { can, personName } from '../../data/permissions.ts'
import { type Comments, commentsQuery, type Me } from '../../data/queries.ts'

/** What happened to the group, newest first, and a field for a comment. */
export function Activity({ group }: { readonly group: Group }) {
  const me = useMe()
  const comments = useLiveQuery(commentsQuery(group.id), 10_000)
  return (
    <Card title="Activity">
      {comments.error !== null && comments.data === undefined ? (
        <LoadError what="comments" error={comments.error} />
      ) : null}
      <Timeline events={eventsOf(group, comments.data ?? [], me)} />
      {can(me, 'triage', group.source) ? (
        <CommentForm onSave={(text, key) => commentGroup(group.id, text, key)} />
      ) : null}
    </Card>
  )
}

function eventsOf(group: Group, comments: Comments, me: Me): readonly TimelineEvent[] {
  const { firstSeenAt, regressedAt, resolvedAt } = group
  const written = comments.map(({ id, author, text, writtenAt }) => ({
    id,
    at: writtenAt,
    text: <b>{personName(author, me)} commented</b>,
    detail: <Peer text={text} most={10_000} />,
  }))
  return [
    ...written,
    {
      id: 'first',
      at: firstSeenAt,
      text: 'First failure',
      mark: { shape: 'open', tone: 'bad' } as const,
    },
    ...(regressedAt === undefined
      ? []
      : [
          {
            id: 'regressed',
            at: regressedAt,
            text: 'Failed again',
            mark: { shape: 'back', tone: 'bad' } as const,
          },
        ]),
    ...(resolvedAt === undefined
      ? []
      : [
          {
            id: 'resolved',
            at: resolvedAt,
            text: 'Resolved',
            mark: { shape: 'done', tone: 'good' } as const,
          },
        ]),
  ].toSorted((one, other) => other.at - one.at)
}
