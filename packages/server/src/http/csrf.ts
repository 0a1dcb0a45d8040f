import type { Caller } from '../access/caller.ts'
import { Refusal } from '../access/refusal.ts'
import { isSame } from '../identity/secrets.ts'

/** Of a request, what says where it comes from. */
export interface Sent {
  readonly method: string
  /** Names in lower case, as Node has them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface Against {
  readonly caller: Caller
  /** `csrfOf` the caller. */
  readonly csrf: string | undefined
  /** Of `publicUrl`. */
  readonly origin: string
}

const CSRF_HEADER = 'x-redrive-csrf'
const READING = ['GET', 'HEAD']

/**
 * Throws a `Refusal` when another site may have made a browser ask. Where that may be, all of these must be
 * right, so that no single mistake of a browser or a proxy opens the door. A token is shown on purpose, by
 * a program: then there is nothing to look for.
 */
export function refuseForgery(sent: Sent, { caller, csrf, origin }: Against): void {
  if (READING.includes(sent.method) || caller.via === 'token') return
  const isSession = caller.via === 'session'
  const why =
    wrongOrigin(sent, origin, isSession) ??
    wrongContent(sent) ??
    (isSession ? wrongProof(sent, csrf) : undefined)
  if (why !== undefined) throw new Refusal('forbidden', why)
}

const header = ({ headers }: Sent, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.join(', ')
}

/**
 * Without a session, programs come without any of these headers; a browser that asks for another site always
 * says so in one of them.
 */
function wrongOrigin(sent: Sent, ours: string, isSession: boolean): string | undefined {
  const origin = header(sent, 'origin')
  const site = header(sent, 'sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return foreign(ours)
  if (origin !== undefined) return origin === ours ? undefined : foreign(ours)
  return isSession && site !== 'same-origin' ? foreign(ours) : undefined
}

const foreign = (ours: string) =>
  `The request does not come from a page of ${ours}. If it does, publicUrl is not the address that the browser shows, or a proxy takes the header Origin away.`

/** What a form of another site can send is never JSON. */
function wrongContent(sent: Sent): string | undefined {
  const hasBody =
    header(sent, 'transfer-encoding') !== undefined ||
    Number(header(sent, 'content-length') ?? '0') > 0
  const type = header(sent, 'content-type')
  if (type === undefined && !hasBody) return undefined
  const [essence = ''] = (type ?? '').split(';')
  if (essence.trim().toLowerCase() === 'application/json') return undefined
  return 'Send JSON, with the content type application/json.'
}

function wrongProof(sent: Sent, csrf: string | undefined): string | undefined {
  const shown = header(sent, CSRF_HEADER)
  if (csrf !== undefined && shown !== undefined && isSame(shown, csrf)) return undefined
  return 'The header X-Redrive-CSRF is missing or of another session. Send `csrf` of GET /api/v1/me.'
}
