/** The kind of a failure. The class decides what happens by default. */
export type FailureClass =
  /** The dependency was unreachable, slow or busy. Default: retry. */
  | 'transient'
  /** The payload cannot be read. Default: dead letter. */
  | 'schema'
  /** A rule of the domain rejects the message. Default: dead letter. */
  | 'business'
  /** A dependency understood the request and rejected it. Default: dead letter. */
  | 'integration'
  /** The cause could not be determined. Default: retry. */
  | 'unknown'

export const FAILURE_CLASSES: readonly FailureClass[] = [
  'transient',
  'schema',
  'business',
  'integration',
  'unknown',
]

/** A normalised error, never a raw `unknown`. */
export interface Failure {
  readonly class: FailureClass
  /** Stable fingerprint. Similar failures share it. */
  readonly signature: string
  /** The error's type, e.g. `TypeError`. */
  readonly type: string
  /** Machine-readable code when the error has one: `ECONNREFUSED`, `23505`, `HTTP 503`. */
  readonly code: string | undefined
  /** The error's message, bounded in length. */
  readonly message: string
  /** The wait time that the dependency requested (Retry-After). */
  readonly retryAfterMs: number | undefined
  /** True when the timeout ended the attempt. This is a sign of overload for every class. */
  readonly timedOut: boolean
  readonly stack: string | undefined
}
