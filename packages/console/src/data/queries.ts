import type { InputQuery, Output, Routes } from '@redrive/api'
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { client, keepCsrf } from './client.ts'
import { keepFor } from './kept.ts'

/** The current caller. */
export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: async ({ signal }) => {
    const me = await client.call('me', {}, { signal })
    keepCsrf(me.csrf)
    keepFor(me.person)
    return me
  },
})

export type Me = Output<'me'>
export type Overview = Output<'overview'>
export type Source = Output<'listSources'>['sources'][number]
export type Runs = Output<'listReplays'>['runs']
export type Comments = Output<'listGroupComments'>['comments']
export type GroupQuery = NonNullable<InputQuery<Routes['listGroups']>['query']>

export const overviewQuery = queryOptions({
  queryKey: ['overview'],
  queryFn: ({ signal }) => client.call('overview', {}, { signal }),
})

export const sourcesQuery = queryOptions({
  queryKey: ['sources'],
  queryFn: async ({ signal }) => (await client.call('listSources', {}, { signal })).sources,
})

/** Runs in these states, newest first. No state: all runs. */
export const runsQuery = (states: readonly Runs[number]['state'][], limit: number) =>
  queryOptions({
    queryKey: ['runs', states, limit],
    queryFn: async ({ signal }) => {
      const query = states.length === 0 ? { limit } : { states: [...states], limit }
      return (await client.call('listReplays', { query }, { signal })).runs
    },
  })

/** The runs of a source, newest first. */
export const sourceRunsQuery = (source: string) =>
  queryOptions({
    queryKey: ['source-runs', source],
    queryFn: async ({ signal }) => {
      const query = { source, limit: 50 }
      return (await client.call('listReplays', { query }, { signal })).runs
    },
  })

export const groupsQuery = (query: GroupQuery) =>
  queryOptions({
    queryKey: ['groups', query],
    queryFn: ({ signal }) => client.call('listGroups', { query }, { signal }),
    placeholderData: keepPreviousData,
  })

/** Groups with open dead letters, largest first. 50 are enough to find the groups that need a decision. */
export const openGroupsQuery = groupsQuery({ hasOpen: true, order: 'open_count', limit: 50 })

/** A group with its ETag, which a change must send. */
export const groupQuery = (id: string) =>
  queryOptions({
    queryKey: ['group', id],
    queryFn: async ({ signal }) => {
      const { output, etag = '' } = await client.ask('getGroup', { params: { id } }, { signal })
      return { group: output, etag }
    },
  })

export const explanationQuery = (id: string) =>
  queryOptions({
    queryKey: ['explanation', id],
    queryFn: ({ signal }) => client.call('explainGroup', { params: { id } }, { signal }),
  })

/** The groups that were merged into a group. */
export const mergedGroupsQuery = (id: string) =>
  queryOptions({
    queryKey: ['group', id, 'merged'],
    queryFn: async ({ signal }) =>
      (await client.call('listMergedGroups', { params: { id } }, { signal })).groups,
  })

export const commentsQuery = (id: string) =>
  queryOptions({
    queryKey: ['comments', id],
    queryFn: async ({ signal }) =>
      (await client.call('listGroupComments', { params: { id } }, { signal })).comments,
  })

export const messagesQuery = (filter: string, limit: number) =>
  queryOptions({
    queryKey: ['messages', filter, limit],
    queryFn: ({ signal }) =>
      client.call('listDeadLetters', { query: { filter, limit } }, { signal }),
  })
