import { RedriveError } from '@redrive/core'
import { isLoopback } from '../config/values.ts'

/** The public URL of the server and the cookies that it can set. */
export interface PublicUrl {
  readonly origin: string
  readonly isHttps: boolean
  readonly cookies: { readonly session: string; readonly login: string }
}

/** Browsers protect cookies with this prefix from other hosts, subdomains and http. */
const SAFE = { session: '__Host-redrive', login: '__Host-redrive-login' }
/**
 * Cookie names for http on this machine, because the prefix requires https. The names are different, so that these
 * cookies are never accepted as the safe ones.
 */
const LOOPBACK = { session: 'redrive-loopback', login: 'redrive-loopback-login' }

export function publicUrlOf(text: string): PublicUrl {
  const { protocol, origin, hostname } = new URL(text)
  if (protocol === 'https:') return { origin, isHttps: true, cookies: SAFE }
  if (protocol === 'http:' && isLoopbackHost(hostname)) {
    return { origin, isHttps: false, cookies: LOOPBACK }
  }
  throw new RedriveError(
    'POLICY_INVALID',
    `publicUrl is "${origin}", but session cookies require https unless the host is this machine. Use TLS and set publicUrl to an https:// URL.`,
  )
}

/** Returns whether a host of a URL is loopback. IPv6 addresses are in brackets there. */
export const isLoopbackHost = (hostname: string): boolean =>
  isLoopback({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: 0 })

const HOME = '/'

/**
 * Returns the absolute URL of a page of this server to open after a login. A path is not enough: browsers resolve
 * `/.//other` to `//other`, which is another host.
 */
export function safeReturn(returnTo: unknown, { origin }: PublicUrl): string {
  const home = new URL(HOME, origin).href
  if (typeof returnTo !== 'string' || !returnTo.startsWith('/')) return home
  if (!URL.canParse(returnTo, origin)) return home
  const url = new URL(returnTo, origin)
  // A return to the login would cause a loop.
  return url.origin === origin && !url.pathname.startsWith('/auth/') ? url.href : home
}
