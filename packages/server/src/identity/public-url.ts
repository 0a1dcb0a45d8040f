import { RedriveError } from '@redrive/core'
import { isLoopback } from '../config/values.ts'

/** The public URL of the server and the cookies that it can set. */
export interface PublicUrl {
  readonly origin: string
  /** Path of the server on its host, with a slash at both ends. */
  readonly base: string
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
  const base = basePathOf(text)
  if (protocol === 'https:') return { origin, base, isHttps: true, cookies: SAFE }
  if (protocol === 'http:' && isLoopbackHost(hostname)) {
    return { origin, base, isHttps: false, cookies: LOOPBACK }
  }
  throw new RedriveError(
    'POLICY_INVALID',
    `publicUrl is "${origin}", but session cookies require https unless the host is this machine. Use TLS and set publicUrl to an https:// URL.`,
  )
}

/** Returns the path of a public URL, with a slash at both ends. */
export const basePathOf = (publicUrl: string): string =>
  new URL(publicUrl).pathname.replace(/\/*$/, '/')

/**
 * Returns the URL of a request without the path of the public URL. Some proxies remove this path and others do not.
 */
export function withoutBase(url: string, base: string): string {
  if (url.startsWith(base)) return `/${url.slice(base.length)}`
  return url === base.slice(0, -1) ? '/' : url
}

/** Returns whether a host of a URL is loopback. IPv6 addresses are in brackets there. */
export const isLoopbackHost = (hostname: string): boolean =>
  isLoopback({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: 0 })

/**
 * Returns the absolute URL of a page of this server to open after a login. A path is not enough: browsers resolve
 * `/.//other` to `//other`, which is another host.
 */
export function safeReturn(returnTo: unknown, { origin, base }: PublicUrl): string {
  const home = new URL(base, origin).href
  if (typeof returnTo !== 'string' || !returnTo.startsWith('/')) return home
  if (!URL.canParse(returnTo, origin)) return home
  const url = new URL(returnTo, origin)
  // A return to the login would cause a loop. Another path of the host belongs to another program.
  const isPage = url.pathname.startsWith(base) && !url.pathname.startsWith(`${base}auth/`)
  return url.origin === origin && isPage ? url.href : home
}
