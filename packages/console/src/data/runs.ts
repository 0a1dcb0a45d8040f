import type { Input, Output, Run } from '@redrive/api'
import { queryOptions } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useStore } from '../store.ts'
import type { ItemState } from '../words/runs.ts'
import { client } from './client.ts'
import { isLive, useLiveQuery } from './live.ts'
import { queryClient } from './query-client.ts'

export type PlanRequest = Input<'planReplay'>['body']
export type RunItems = Output<'listReplayItems'>['items']

const runQuery = (id: string) =>
  queryOptions({
    queryKey: ['run', id],
    queryFn: ({ signal }) => client.call('getReplay', { params: { id } }, { signal }),
  })

/** 100 items: two screens. */
export const ITEMS_PAGE = 100

export const itemsQuery = (id: string, states: readonly ItemState[], after: number) =>
  queryOptions({
    queryKey: ['run-items', id, states, after],
    queryFn: async ({ signal }) => {
      const all = states.length === 0 ? {} : { states: [...states] }
      const query = { ...all, limit: ITEMS_PAGE, after }
      return (await client.call('listReplayItems', { params: { id }, query }, { signal })).items
    },
  })

/** The changes of a run to its messages. Reading them is written to the audit log. */
export const runChangeQuery = (id: string) =>
  queryOptions({
    queryKey: ['run-change', id],
    queryFn: ({ signal }) => client.call('getReplayChange', { params: { id } }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
    // Not kept after the page is left: it may have values that only some people may see.
    gcTime: 0,
    refetchOnWindowFocus: false,
  })

/** 2 s without a stream. With one, the next poll only checks that the stream is complete. */
const POLL_MS = 2_000
const CHECK_MS = 30_000
/** 5 s before the stream is opened again. */
const RETRY_MS = 5_000

/** `lost`: it ended or could not be opened, and is opened again. */
type StreamState = 'opening' | 'open' | 'lost'

/** Returns a run and follows it: by a stream, and by polls while the stream is not open. */
export function useRun(id: string) {
  const [stream, setStream] = useState<StreamState>('opening')
  const [isEnded, setEnded] = useState(false)
  const everyMs = stream === 'open' || isEnded ? CHECK_MS : POLL_MS
  const found = useLiveQuery(runQuery(id), everyMs)
  const isNowOver = found.data !== undefined && isOver(found.data)
  if (isNowOver !== isEnded) setEnded(isNowOver)
  const live = useStore(isLive)
  const isActive = found.data !== undefined && !isNowOver
  useEffect(() => {
    if (!isActive || !live) return undefined
    const abort = new AbortController()
    void follow(id, abort.signal, setStream)
    return () => {
      abort.abort()
      setStream('opening')
    }
  }, [id, isActive, live])
  return { found, isStreamLost: stream === 'lost' }
}

async function follow(
  id: string,
  signal: AbortSignal,
  onChange: (state: StreamState) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const run of client.stream('watchReplay', { params: { id } }, { signal })) {
        onChange('open')
        queryClient.setQueryData(runQuery(id).queryKey, run)
      }
    } catch {
      // The polls report a lost connection.
    }
    // The server also ends a stream when it stops or after an hour. The stream is opened again; an ended run
    // aborts it.
    if (!signal.aborted) onChange('lost')
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

export const isOver = ({ state }: Pick<Run, 'state'>): boolean =>
  state === 'done' || state === 'cancelled' || state === 'plan_expired'

/** Reads a run as it is now. */
export const readRun = (id: string): Promise<Run> => client.call('getReplay', { params: { id } })

/** Plans a replay. The same key returns the same run. `etag` is the version of the message that was edited. */
export async function planReplay(
  body: PlanRequest,
  { key, etag }: { readonly key: string; readonly etag?: string },
): Promise<Run> {
  const input = { body, ...(etag === undefined ? {} : { ifMatch: etag }) }
  const run = await client.call('planReplay', input, { idempotencyKey: key })
  queryClient.setQueryData(runQuery(run.id).queryKey, run)
  await refreshRuns()
  return run
}

/** Approves a run and starts it. The hash is that of the plan which the user saw. */
export async function approveRun({ id, hash }: Run, key: string): Promise<void> {
  const input = { params: { id }, body: { hash } }
  await changed(id, client.call('approveReplay', input, { idempotencyKey: key }))
}

export type RunVerb = 'pauseReplay' | 'resumeReplay' | 'cancelReplay'

export async function changeRun(verb: RunVerb, id: string, key: string): Promise<void> {
  await changed(id, client.call(verb, { params: { id } }, { idempotencyKey: key }))
}

async function changed(id: string, work: Promise<Run>): Promise<void> {
  queryClient.setQueryData(runQuery(id).queryKey, await work)
  await refreshRuns()
}

async function refreshRuns(): Promise<void> {
  const keys = ['runs', 'source-runs', 'run-items', 'overview', 'groups', 'group', 'messages']
  await Promise.all([
    queryClient.resetQueries({ queryKey: ['message-pages'] }),
    ...keys.map((key) => queryClient.invalidateQueries({ queryKey: [key] })),
  ])
}

/** Returns the ids of the messages of a run in these states, at most 1,000: the most that a plan accepts. */
export async function messageIds(id: string, states: readonly ItemState[]): Promise<string[]> {
  const ids: string[] = []
  for (let after = -1; ids.length < IDS_MAX; ) {
    const query = { states: [...states], limit: 200, after }
    const { items } = await client.call('listReplayItems', { params: { id }, query })
    ids.push(...items.map(({ deadLetter }) => deadLetter))
    const last = items.at(-1)
    if (last === undefined || items.length < 200) break
    after = last.position
  }
  return ids.slice(0, IDS_MAX)
}

const IDS_MAX = 1_000
