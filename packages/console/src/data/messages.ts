import type { DeadLetter, Output } from '@redrive/api'
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client } from './client.ts'
import { queryClient } from './query-client.ts'

/** A row of the list of messages. The history is left out, because a list can have 100,000 rows. */
export type MessageRow = Omit<DeadLetter, 'history'>
export type Payload = Output<'getPayload'>
export type Cycles = Output<'listCycles'>['cycles']
export type ReplayItems = Output<'listDeadLetterReplays'>['items']

const rowOf = ({ history: _, ...row }: DeadLetter): MessageRow => row

/** 100 rows: two screens. */
const PAGE_ROWS = 100

/** All pages of a filter that were loaded. They are not loaded again; `newestQuery` finds what changed. */
export const messagePagesQuery = (filter: string) =>
  infiniteQueryOptions({
    queryKey: ['message-pages', filter],
    queryFn: async ({ pageParam, signal }) => {
      const cursor = pageParam === '' ? {} : { cursor: pageParam }
      const query = { filter, limit: PAGE_ROWS, ...cursor }
      const page = await client.call('listDeadLetters', { query }, { signal })
      return { ...page, deadLetters: page.deadLetters.map(rowOf) }
    },
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  })

/** The newest rows of a filter. */
export const newestQuery = (filter: string) =>
  queryOptions({
    queryKey: ['messages', filter, PAGE_ROWS],
    queryFn: async ({ signal }) => {
      const query = { filter, limit: PAGE_ROWS }
      const page = await client.call('listDeadLetters', { query }, { signal })
      return { rows: page.deadLetters.map(rowOf), isAll: page.nextCursor === undefined }
    },
  })

/** A message with its ETag, which an edit must send. */
export const messageQuery = (id: string) =>
  queryOptions({
    queryKey: ['message', id],
    queryFn: async ({ signal }) => {
      const input = { params: { id } }
      const { output, etag = '' } = await client.ask('getDeadLetter', input, { signal })
      return { message: output, etag }
    },
  })

export const cyclesQuery = (id: string) =>
  queryOptions({
    queryKey: ['message-cycles', id],
    queryFn: async ({ signal }) =>
      (await client.call('listCycles', { params: { id } }, { signal })).cycles,
  })

export const messageReplaysQuery = (id: string) =>
  queryOptions({
    queryKey: ['message-replays', id],
    queryFn: async ({ signal }) =>
      (await client.call('listDeadLetterReplays', { params: { id } }, { signal })).items,
  })

export const messageCommentsQuery = (id: string) =>
  queryOptions({
    queryKey: ['message-comments', id],
    queryFn: async ({ signal }) =>
      (await client.call('listDeadLetterComments', { params: { id } }, { signal })).comments,
  })

/** Reads the unmasked payload. The audit log keeps the reason. */
export const revealPayload = (id: string, reason: string): Promise<Payload> =>
  client.call('getPayload', { params: { id }, query: { reason } })

export async function commentMessage(id: string, text: string, key: string): Promise<void> {
  const input = { params: { id }, body: { text } }
  await client.call('commentDeadLetter', input, { idempotencyKey: key })
  await queryClient.invalidateQueries({ queryKey: ['message-comments', id] })
}

/** The dead letters to discard or restore. */
export type Settling = Parameters<typeof client.call<'discard'>>[1]['body']

/** Discards or restores messages. Returns the number of changed ones. */
export async function settleMessages(
  action: 'discard' | 'restore',
  body: Settling,
  key: string,
): Promise<number> {
  const { changed } = await client.call(action, { body }, { idempotencyKey: key })
  await queryClient.invalidateQueries({ queryKey: ['overview'] })
  return changed
}

/** Sets the outcome of replays without a confirmation. */
export async function setOutcome(
  ids: readonly string[],
  as: 'resolved' | 'open',
  key: string,
): Promise<number> {
  const body = { ids: [...ids], as }
  const { changed } = await client.call('setOutcomes', { body }, { idempotencyKey: key })
  await refreshMessages()
  return changed
}

/** Loads everything again that shows messages. Lists start at their first page. */
export async function refreshMessages(): Promise<void> {
  const keys = ['message', 'messages', 'message-replays', 'groups', 'group', 'overview']
  await Promise.all([
    queryClient.resetQueries({ queryKey: ['message-pages'] }),
    ...keys.map((key) => queryClient.invalidateQueries({ queryKey: [key] })),
  ])
}
