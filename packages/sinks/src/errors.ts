import { RedriveError } from '@redrive/core'

/** 200: enough to understand the response. Error pages are longer without more information. */
const DETAIL_MAX = 200

export interface HttpErrorFacts {
  readonly status: number
  /** The host of the response, never the whole URL, which may contain a secret. */
  readonly host: string
  /** The text of the response, without our credentials. */
  readonly detail?: string
  readonly retryAfter?: string | undefined
  readonly retryAfterMs?: number | undefined
}

/** An unexpected response. The classifier reads `status`, `retryAfterMs` and `headers`. */
export class HttpError extends Error {
  readonly status: number
  readonly retryAfterMs: number | undefined
  readonly headers: { readonly 'retry-after': string | undefined }

  constructor({ status, host, detail = '', retryAfter, retryAfterMs }: HttpErrorFacts) {
    const text = detail.replaceAll(/\s+/g, ' ').trim().slice(0, DETAIL_MAX)
    super(`${host} responded with ${status}${text === '' ? '' : `: ${text}`}`)
    this.name = 'HttpError'
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.headers = { 'retry-after': retryAfter }
  }
}

/** Creates an error for data that will never be accepted there: an integration failure that no retry fixes. */
export function refused(message: string, cause?: unknown): RedriveError {
  return new RedriveError('REFUSED', message, cause === undefined ? {} : { cause })
}

/** Creates an error for a destination that is down now. */
export function unreachable(message: string, cause?: unknown): RedriveError {
  return new RedriveError('UNREACHABLE', message, cause === undefined ? {} : { cause })
}

/** Creates an error for an unknown result: the batch may have been accepted. */
export function unknownOutcome(message: string): RedriveError {
  return new RedriveError('OUTCOME_UNKNOWN', message)
}

export function closed(name: string): RedriveError {
  return new RedriveError('CLOSED', `Sink "${name}" is closed. Close it after the emitter.`)
}

/** Codes of certificates that no retry can make valid. An expired one is left out: its renewal is an outage that ends. */
const UNTRUSTED: ReadonlySet<unknown> = new Set([
  'CERT_REVOKED',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'INVALID_PURPOSE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])
const EXPIRED: ReadonlySet<unknown> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])

/** Returns the error for a certificate that is not valid; undefined for other errors. */
export function certificateError(error: Error, host: string): RedriveError | undefined {
  const { code } = error as { readonly code?: unknown }
  if (UNTRUSTED.has(code)) {
    const fix = "Add its authority to 'tls.ca' of the sink, or correct the URL."
    return refused(`The certificate of ${host} is not trusted (${String(code)}). ${fix}`, error)
  }
  if (!EXPIRED.has(code)) return undefined
  const message = `The certificate of ${host} has expired, or is not valid yet (${String(code)}). Renew it. Redrive retries.`
  return new RedriveError('UNREACHABLE', message, { cause: error })
}
