import type { InputQuery, Output, Routes } from '@redrive/api'
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { client } from './client.ts'
import { queryClient } from './query-client.ts'

export type SetAsideQuery = NonNullable<InputQuery<Routes['listSetAside']>['query']>
export type SetAsideMessage = Output<'getSetAside'>
export type SetAsidePayload = Output<'getSetAsidePayload'>

/** 200: the most that the API returns in one page. */
export const SET_ASIDE_MAX = 200

export const setAsideQuery = (query: SetAsideQuery) =>
  queryOptions({
    queryKey: ['set-aside', query],
    queryFn: ({ signal }) =>
      client.call('listSetAside', { query: { ...query, limit: SET_ASIDE_MAX } }, { signal }),
    placeholderData: keepPreviousData,
  })

export const setAsideMessageQuery = (id: string) =>
  queryOptions({
    queryKey: ['set-aside-message', id],
    queryFn: ({ signal }) => client.call('getSetAside', { params: { id } }, { signal }),
  })

/** Days on which retention deleted dead letters of a source, newest first. */
export const expiredQuery = (source: string) =>
  queryOptions({
    queryKey: ['expired', source],
    queryFn: async ({ signal }) => {
      const query = { sources: [source], limit: 5 }
      return (await client.call('listExpired', { query }, { signal })).days
    },
  })

/** The unmasked body and headers. Each call is recorded in the audit log, so the result is never loaded again. */
export const readSetAsidePayload = (id: string, reason: string): Promise<SetAsidePayload> =>
  client.call('getSetAsidePayload', { params: { id }, query: { reason } })

export type SetAsideAction = 'replay' | 'approve' | 'discard' | 'reopen'

const OPERATIONS = {
  replay: 'replaySetAside',
  approve: 'approveSetAside',
  discard: 'discardSetAside',
  reopen: 'reopenSetAside',
} as const

export interface SetAsideChange {
  readonly ids: readonly string[]
  /** The headers to leave out. Present only for a replay and for its approval. */
  readonly withoutHeaders?: readonly string[]
}

/** Changes the status of messages, and loads everything that shows them again. */
export async function changeSetAside(
  action: SetAsideAction,
  { ids, withoutHeaders = [] }: SetAsideChange,
  key: string,
): Promise<Output<'discardSetAside'>> {
  const body = {
    ids: [...ids],
    ...(withoutHeaders.length > 0 ? { withoutHeaders: [...withoutHeaders] } : {}),
  }
  const changed = await client.call(OPERATIONS[action], { body }, { idempotencyKey: key })
  const keys = [['set-aside'], ['set-aside-message'], ['sources'], ['overview']]
  await Promise.all(keys.map((queryKey) => queryClient.invalidateQueries({ queryKey })))
  return changed
}
