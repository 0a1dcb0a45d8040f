import { type Client, createClient } from '@redrive/api'
import { PAGE } from '../page-facts.ts'
import { sessionEnded, watchedFetch } from './connection.ts'
import { forgetAll } from './kept.ts'
import { queryClient } from './query-client.ts'

let csrf: string | undefined

/** Keeps the CSRF token of the session, which every change must send. */
export function keepCsrf(token: string | undefined): void {
  csrf = token
}

/**
 * Calls `fetch`, and reads the caller again when something about them has changed: a new session has another CSRF token, and
 * a refused request can mean that a permission was revoked.
 */
const callerFetch: typeof fetch = async (input, init) => {
  const hadEnded = sessionEnded.get()
  const response = await watchedFetch(input, init)
  if (response.status === 403 || (hadEnded && response.status !== 401))
    void queryClient.invalidateQueries({ queryKey: ['me'] })
  return response
}

export const client: Client = createClient({
  url: new URL(PAGE.base, location.origin).href,
  csrf: () => csrf,
  fetch: callerFetch,
})

/** Ends the session. Not an operation of the API, because it only concerns the cookie of the browser. */
export async function signOut(): Promise<void> {
  const headers = new Headers(csrf === undefined ? {} : { 'x-redrive-csrf': csrf })
  await watchedFetch(`${PAGE.base}auth/logout`, { method: 'POST', headers })
  forgetAll()
  location.assign(PAGE.base)
}
