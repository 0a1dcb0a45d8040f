import { type Client, createClient } from '@redrive/api'
import { PAGE } from '../page-facts.ts'
import { watchedFetch } from './connection.ts'
import { forgetAll } from './kept.ts'

let csrf: string | undefined

/** Keeps the CSRF token of the session, which every change must send. */
export function keepCsrf(token: string | undefined): void {
  csrf = token
}

export const client: Client = createClient({
  url: new URL(PAGE.base, location.origin).href,
  csrf: () => csrf,
  fetch: watchedFetch,
})

/** Ends the session. Not an operation of the API, because it only concerns the cookie of the browser. */
export async function signOut(): Promise<void> {
  const headers = new Headers(csrf === undefined ? {} : { 'x-redrive-csrf': csrf })
  await watchedFetch(`${PAGE.base}auth/logout`, { method: 'POST', headers })
  forgetAll()
  location.assign(PAGE.base)
}
