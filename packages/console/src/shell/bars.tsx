import { useCallback, useEffect, useState } from 'react'
import { Button, lookOf } from '../components/button.tsx'
import { Note } from '../components/note.tsx'
import { connection, sessionEnded } from '../data/connection.ts'
import type { Me } from '../data/queries.ts'
import { isLoadedOnce, queryClient } from '../data/query-client.ts'
import { loginUrl } from '../page-facts.ts'
import { useStore } from '../store.ts'
import { durationText } from '../words/times.ts'

/** Facts about the connection and the session, above the page. */
export function Bars({ me }: { readonly me: Me }) {
  return (
    <aside aria-label="Connection and session">
      {me.via === 'development' ? (
        <Note tone="bad" shape="warn" isBar>
          <b>Development mode.</b> Every caller has all permissions of this user.
        </Note>
      ) : null}
      <SessionBar />
      <ConnectionBar />
    </aside>
  )
}

function SessionBar() {
  const hasEnded = useStore(sessionEnded)
  if (!hasEnded) return null
  return (
    <Note
      tone="warn"
      shape="time"
      isBar
      role="alert"
      action={
        <a href={loginUrl()} target="_blank" rel="noreferrer" {...lookOf({ size: 'small' })}>
          Sign in
        </a>
      }
    >
      <b>Your session ended.</b> Sign in in a new tab. This page keeps your input.
    </Note>
  )
}

/** The waits before the next retries, ms. The last one repeats. */
const WAITS_MS = [2_000, 4_000, 8_000, 15_000] as const

function ConnectionBar() {
  const current = useStore(connection)
  return current.state === 'lost' ? <Lost since={current.since} lastAt={current.lastAt} /> : null
}

interface LostProps {
  readonly since: number
  readonly lastAt: number | undefined
}

/** Retries with growing waits, and loads everything on the page when the server responds again. */
function Lost({ since, lastAt }: LostProps) {
  const [now, setNow] = useState(since)
  const [retries, setRetries] = useState(0)
  const [nextAt, setNextAt] = useState(since + WAITS_MS[0])
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  const retry = useCallback(() => {
    const wait = WAITS_MS[Math.min(retries + 1, WAITS_MS.length - 1)] ?? 0
    setRetries(retries + 1)
    setNextAt(Date.now() + wait)
    void queryClient.invalidateQueries({ predicate: ({ queryKey }) => !isLoadedOnce(queryKey[0]) })
  }, [retries])
  useEffect(() => {
    const timer = setTimeout(retry, nextAt - Date.now())
    return () => clearTimeout(timer)
  }, [nextAt, retry])
  const data =
    lastAt === undefined ? '' : ` Data is from ${new Date(lastAt).toLocaleTimeString('en-GB')}.`
  return (
    <Note
      tone="warn"
      shape="warn"
      isBar
      role="status"
      action={
        <Button size="small" onClick={retry}>
          Retry now
        </Button>
      }
    >
      <b>No connection to the server for {durationText(now - since)}.</b>
      {data} Next retry in {durationText(nextAt - now)}.
    </Note>
  )
}
