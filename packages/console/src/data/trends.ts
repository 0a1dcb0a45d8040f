import { queryOptions } from '@tanstack/react-query'
import { boundsOf, RANGES, type RangeName } from '../words/trends.ts'
import { client } from './client.ts'

/** Failures per minute or hour of one group, or of all groups. */
export const trendQuery = (range: RangeName, group?: string) =>
  queryOptions({
    queryKey: ['trend', range, group],
    queryFn: async ({ signal }) => {
      const { per } = RANGES[range]
      const groups = group === undefined ? {} : { groups: [group] }
      const query = { per, ...boundsOf(RANGES[range], Date.now()), ...groups }
      return (await client.call('trend', { query }, { signal })).points
    },
  })
