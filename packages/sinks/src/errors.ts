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
