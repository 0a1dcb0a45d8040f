/**
 * What kind of trouble a failure is. The class decides what happens by default:
 *
 * | class       | meaning                                        | default        |
 * |-------------|------------------------------------------------|----------------|
 * | transient   | the dependency was unreachable, slow or busy   | retry          |
 * | schema      | the payload cannot be read                     | dead letter    |
 * | business    | the rules of the domain say no                 | dead letter    |
 * | integration | a dependency understood us and refused         | dead letter    |
 * | unknown     | none of the above could be told                | retry          |
 */
export type FailureClass = 'transient' | 'schema' | 'business' | 'integration' | 'unknown'

export const FAILURE_CLASSES: readonly FailureClass[] = [
  'transient',
  'schema',
  'business',
  'integration',
  'unknown',
]

/** A normalised error. Never a raw `unknown`. */
export interface Failure {
  readonly class: FailureClass
  /** Stable fingerprint: alike failures have the same one. */
  readonly signature: string
  /** The error's type, e.g. `TypeError`. */
  readonly type: string
  /** Machine-readable code when the error has one: `ECONNREFUSED`, `23505`, `HTTP 503`. */
  readonly code: string | undefined
  /** The error's message, bounded in length. */
  readonly message: string
  /** The dependency asked us to wait this long (Retry-After). */
  readonly retryAfterMs: number | undefined
  /** True when the attempt was cut by its timeout: a sign of overload, whatever the class. */
  readonly timedOut: boolean
  readonly stack: string | undefined
}
