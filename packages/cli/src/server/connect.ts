import { type Client, createClient } from '@redrive/api'
import type { CommonOptions, Io } from '../io.ts'
import { say } from '../print.ts'
import { LOOPBACK } from './address.ts'
import { settingsOf } from './settings.ts'

/** Creates the API client that every command uses. */
export function connect(
  io: Io,
  options: CommonOptions,
  { isAgent = false }: { readonly isAgent?: boolean } = {},
): Client {
  const { url, token } = settingsOf(io, options)
  const { protocol, hostname } = new URL(url)
  if (token !== undefined && protocol === 'http:' && !LOOPBACK.test(hostname)) {
    say(io)`Warning: the token is sent to ${hostname} without encryption. Use https.`
  }
  return createClient({ url, isAgent, fetch: io.fetch, ...(token === undefined ? {} : { token }) })
}
