/** An expected classification. */
export interface Expectation {
  readonly class: 'transient' | 'schema' | 'business' | 'integration' | 'unknown'
  /** The code that Redrive shows; undefined when the error has none. */
  readonly code: string | undefined
  /** The property of the error that decides; undefined when Redrive does not recognise the error. */
  readonly by: string | undefined
  /** Whether the failure counts as a timeout. */
  readonly timedOut: boolean
  /** The wait that the server requested. */
  readonly retryAfterMs: number | undefined
}

/** Expectations by package and situation. */
export type Situations = Readonly<Record<string, Readonly<Record<string, Expectation>>>>

type Row = (code: string | undefined, by?: string, retryAfterMs?: number) => Expectation

const rowOf =
  (failureClass: Expectation['class'], timedOut = false): Row =>
  (code, by, retryAfterMs) => ({ class: failureClass, code, by, timedOut, retryAfterMs })

export const transient: Row = rowOf('transient')
/** A transient failure that counts as a timeout. */
export const timeout: Row = rowOf('transient', true)
export const schema: Row = rowOf('schema')
export const business: Row = rowOf('business')
export const integration: Row = rowOf('integration')
export const unknown: Row = rowOf('unknown')
