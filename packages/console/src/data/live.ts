import { ApiError } from '@redrive/api'
import {
  type QueryKey,
  useQuery,
  type UseQueryOptions,
  type UseQueryResult,
} from '@tanstack/react-query'
import { useEffect } from 'react'
import { openModals } from '../components/modal.ts'
import { createStore, useStore } from '../store.ts'

/** Whether pages update while they are open. The key `l` changes it. */
export const isLive = createStore(true)

/** 30 s after the server reported too many requests. */
const CALM_MS = 30_000

/** Number of live queries of the current page. Without one, the page does not update, and must not look live. */
export const liveQueries = createStore(0)

/**
 * Reads data and repeats it every `everyMs` while the page is visible, live, and without an open dialog. Old data stays
 * while new data loads. The page counts as live.
 */
export function useLiveQuery<T, K extends QueryKey>(
  options: UseQueryOptions<T, Error, T, K>,
  everyMs: number,
): UseQueryResult<T> {
  useEffect(() => {
    liveQueries.set(liveQueries.get() + 1)
    return () => liveQueries.set(liveQueries.get() - 1)
  }, [])
  return useShellQuery(options, everyMs)
}

/** `useLiveQuery` for the sidebar, which is the same on every page. */
export function useShellQuery<T, K extends QueryKey>(
  options: UseQueryOptions<T, Error, T, K>,
  everyMs: number,
): UseQueryResult<T> {
  const live = useStore(isLive)
  const modals = useStore(openModals)
  const isUpdating = live && modals === 0
  return useQuery({
    ...options,
    refetchInterval: ({ state: { error } }) => {
      if (!isUpdating) return false
      const isTooMuch = error instanceof ApiError && error.code === 'too_many_requests'
      return isTooMuch ? CALM_MS : everyMs
    },
  })
}
