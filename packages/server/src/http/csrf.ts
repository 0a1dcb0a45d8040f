import type { Caller } from '../access/caller.ts'
import { ProblemError } from '../access/problem-error.ts'
import { isSame } from '../identity/secrets.ts'

/** The parts of a request that show its origin. */
export interface CsrfRequest {
  readonly method: string
  /** Names in lower case, as in Node. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface Against {
  readonly caller: Caller
  /** Result of `csrfOf` for the caller. */
  readonly csrf: string | undefined
  /** Origin of `publicUrl`. */
  readonly origin: string
}

const CSRF_HEADER = 'x-redrive-csrf'
const READING = ['GET', 'HEAD']

/**
 * Throws a `ProblemError` when another site may have caused the request (CSRF). All checks must pass, so that one
 * bug in a browser or proxy is not enough for an attack. Requests with a token are exempt, because browsers do
 * not send tokens automatically.
 */
export function refuseForgery(sent: CsrfRequest, { caller, csrf, origin }: Against): void {
  if (READING.includes(sent.method) || caller.via === 'token') return
  const isSession = caller.via === 'session'
  const problem =
    wrongOrigin(sent, origin, isSession) ??
    wrongContent(sent) ??
    (isSession ? wrongToken(sent, csrf) : undefined)
  if (problem !== undefined) throw new ProblemError('forbidden', problem)
}

const header = ({ headers }: CsrfRequest, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.join(', ')
}

/**
 * Checks the origin. Programs without a session send none of these headers. A browser always sends one of them
 * in a request from another site.
 */
function wrongOrigin(sent: CsrfRequest, expected: string, isSession: boolean): string | undefined {
  const origin = header(sent, 'origin')
  const site = header(sent, 'sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return foreign(expected)
  if (origin !== undefined) return origin === expected ? undefined : foreign(expected)
  return isSession && site !== 'same-origin' ? foreign(expected) : undefined
}

const foreign = (expected: string) =>
  `The request does not come from a page of "${expected}". If it does, set publicUrl to the URL in the browser, and check that no proxy removes the header Origin.`

/** Checks the content type. A form of another site cannot send JSON. */
function wrongContent(sent: CsrfRequest): string | undefined {
  const hasBody =
    header(sent, 'transfer-encoding') !== undefined ||
    Number(header(sent, 'content-length') ?? '0') > 0
  const type = header(sent, 'content-type')
  if (type === undefined && !hasBody) return undefined
  const [essence = ''] = (type ?? '').split(';')
  if (essence.trim().toLowerCase() === 'application/json') return undefined
  return "Send JSON with the header 'Content-Type: application/json'."
}

function wrongToken(sent: CsrfRequest, csrf: string | undefined): string | undefined {
  const received = header(sent, CSRF_HEADER)
  if (csrf !== undefined && received !== undefined && isSame(received, csrf)) return undefined
  return 'The header X-Redrive-CSRF is missing or belongs to another session. Send `csrf` from GET /api/v1/me.'
}
