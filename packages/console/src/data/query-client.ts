import { QueryClient } from '@tanstack/react-query'

/** 5 min: going back shows the last data of a page immediately. */
const KEPT_MS = 300_000

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The next update is the retry. A retry in between would hide the error for longer.
      retry: false,
      gcTime: KEPT_MS,
      // The browser's guess about the network is often wrong for servers on this machine or in an intranet.
      networkMode: 'always',
    },
    mutations: { retry: false, networkMode: 'always' },
  },
})

/** Data that is read once: long lists, and what is written to the audit log or creates something when it is read. */
const ONCE: readonly unknown[] = [
  'message',
  'message-cycles',
  'message-pages',
  'run-change',
  'plan',
  'freeze',
]

export const isLoadedOnce = (name: unknown): boolean => ONCE.includes(name)
