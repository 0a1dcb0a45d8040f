import { RedriveError } from '@redrive/core'

/** 200: enough to see what the other side means; its error pages are longer and say no more. */
const DETAIL_MAX = 200

export interface HttpErrorFacts {
  readonly status: number
  /** Who answered: the host, never the whole address, which may carry a secret. */
  readonly host: string
  /** What it said, with our own credentials taken out. */
  readonly detail?: string
  readonly retryAfter?: string | undefined
  readonly retryAfterMs?: number | undefined
}

/** An answer that is not the one we need. The classifier reads `status`, `retryAfterMs` and `headers`. */
export class HttpError extends Error {
  readonly status: number
  readonly retryAfterMs: number | undefined
  readonly headers: { readonly 'retry-after': string | undefined }

  constructor({ status, host, detail = '', retryAfter, retryAfterMs }: HttpErrorFacts) {
    const said = detail.replaceAll(/\s+/g, ' ').trim().slice(0, DETAIL_MAX)
    super(`${host} answered ${status}${said === '' ? '' : `: ${said}`}`)
    this.name = 'HttpError'
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.headers = { 'retry-after': retryAfter }
  }
}

/** Nothing of this kind will ever be accepted there: the failure is an integration's, and no retry helps. */
export function refused(message: string, cause?: unknown): RedriveError {
  return new RedriveError('REFUSED', message, cause === undefined ? {} : { cause })
}

/** The destination is gone for now. */
export function unreachable(message: string, cause?: unknown): RedriveError {
  return new RedriveError('UNREACHABLE', message, cause === undefined ? {} : { cause })
}

/** It may have accepted the batch; nobody knows. */
export function unknownOutcome(message: string): RedriveError {
  return new RedriveError('OUTCOME_UNKNOWN', message)
}

export function closed(name: string): RedriveError {
  return new RedriveError('CLOSED', `The sink ${name} is closed. Close it after the emitter.`)
}
