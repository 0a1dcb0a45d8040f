import { RedriveError } from '@redrive/core'
import { isLoopback } from '../config/values.ts'

/** How the server looks from outside, and what cookies it can therefore set. */
export interface PublicUrl {
  readonly origin: string
  readonly isHttps: boolean
  readonly cookies: { readonly session: string; readonly login: string }
}

/** Kept by browsers from other hosts, from subdomains and from plain http. */
const SAFE = { session: '__Host-redrive', login: '__Host-redrive-login' }
/**
 * The prefix needs https. On this machine alone plain http will do, under names of its own: what was set
 * there is never taken for one of the safe ones.
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
    `publicUrl is ${origin}, but sessions need https unless it is this machine. Put TLS before the server and say https:// in publicUrl.`,
  )
}

/** A host as it is in a URL, where IPv6 is in brackets. */
export const isLoopbackHost = (hostname: string): boolean =>
  isLoopback({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: 0 })

const HOME = '/'

/**
 * Where to go after a login: a page of ours, as a whole address. A path alone would not do, because `/.//other`
 * becomes `//other` on the way, which is another host.
 */
export function safeReturn(returnTo: unknown, { origin }: PublicUrl): string {
  const home = new URL(HOME, origin).href
  if (typeof returnTo !== 'string' || !returnTo.startsWith('/')) return home
  if (!URL.canParse(returnTo, origin)) return home
  const url = new URL(returnTo, origin)
  // Back to a login it would go round in circles.
  return url.origin === origin && !url.pathname.startsWith('/auth/') ? url.href : home
}
