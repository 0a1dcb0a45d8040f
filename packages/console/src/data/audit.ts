import { infiniteQueryOptions } from '@tanstack/react-query'
import type { AuditFilter } from '../words/audit.ts'
import { client } from './client.ts'

/** 100 entries: about 50 actions, because most have an entry before and one after. */
const PAGE_ENTRIES = 100

/** Pages of the audit log, newest first. Not live, because a reader compares entries. */
export const auditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ['audit', filter],
    queryFn: ({ pageParam, signal }) => {
      const before = pageParam === undefined ? {} : { before: pageParam }
      const query = { ...filter, ...before, limit: PAGE_ENTRIES }
      return client.call('listAudit', { query }, { signal })
    },
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchOnWindowFocus: false,
  })
