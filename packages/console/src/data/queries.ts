import type { InputQuery, Output, Routes } from '@redrive/api'
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { client, keepCsrf } from './client.ts'

/** The current caller. */
export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: async ({ signal }) => {
    const me = await client.call('me', {}, { signal })
    keepCsrf(me.csrf)
    return me
  },
})

export type Me = Output<'me'>
export type Overview = Output<'overview'>
export type Source = Output<'listSources'>['sources'][number]
export type Runs = Output<'listReplays'>['runs']
export type GroupQuery = NonNullable<InputQuery<Routes['listGroups']>['query']>

export const overviewQuery = queryOptions({
  queryKey: ['overview'],
  queryFn: ({ signal }) => client.call('overview', {}, { signal }),
})

export const sourcesQuery = queryOptions({
  queryKey: ['sources'],
  queryFn: async ({ signal }) => (await client.call('listSources', {}, { signal })).sources,
})

/** Runs that are planned, running or paused, and the latest ended ones. */
export const runsQuery = (states: readonly Runs[number]['state'][], limit: number) =>
  queryOptions({
    queryKey: ['runs', states, limit],
    queryFn: async ({ signal }) => {
      const query = { states: [...states], limit }
      return (await client.call('listReplays', { query }, { signal })).runs
    },
  })

export const groupsQuery = (query: GroupQuery) =>
  queryOptions({
    queryKey: ['groups', query],
    queryFn: ({ signal }) => client.call('listGroups', { query }, { signal }),
    placeholderData: keepPreviousData,
  })
