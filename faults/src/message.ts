/** What a message is for; the checker derives from it where the message must end. */
export type Kind =
  /** Succeeds. */
  | 'good'
  /** Its dependency fails for its first one or two runs. */
  | 'flaky'
  /** Succeeds as soon as the dependency is up; a consumer may be told that it is down. */
  | 'outage'
  /** Refused by the business, always. */
  | 'business'
  /** Fails in the same way every time. */
  | 'repeats'
  /** Kills the process that runs it. */
  | 'killer'
  /** Fails once and is retried soon, or in ten minutes. */
  | 'soon'
  | 'later'

/** Where a message of a kind must be at the end. */
export type End = 'effect' | 'dlq' | 'quarantine' | 'delay'

export const END_OF: Readonly<Record<Kind, End>> = {
  good: 'effect',
  flaky: 'effect',
  outage: 'effect',
  soon: 'effect',
  business: 'dlq',
  repeats: 'quarantine',
  killer: 'quarantine',
  later: 'delay',
}

export interface Body {
  readonly id: string
  readonly kind: Kind
  /** Runs that fail before one succeeds, for `flaky`. */
  readonly failures: number
  readonly padding: string
}

export interface PlannedMessage {
  readonly id: string
  readonly kind: Kind
}

/** Of every hundred messages, so many of each kind; the rest is good. */
export type Mix = Readonly<Partial<Record<Kind, number>>>

/** Every path of a hand-off is taken all the time, and most messages are fine, as in life. */
export const USUAL_MIX: Mix = { flaky: 12, business: 4, repeats: 2 }

/** A plan of messages in which the kinds are spread evenly. */
export function plan(run: string, count: number, mix: Mix): readonly PlannedMessage[] {
  const kinds = Object.entries(mix).flatMap(([kind, share]) =>
    Array.from({ length: share }, () => kind as Kind),
  )
  return Array.from({ length: count }, (_, index) => ({
    id: `${run}/${index}`,
    // 37 has no factor in common with 100: every hundred contains every share, spread.
    kind: kinds[(index * 37) % 100] ?? 'good',
  }))
}

/** About 200 bytes, as a small order has. */
const BYTES = 200

export function bodyOf({ id, kind }: PlannedMessage): Buffer {
  const failures = kind === 'flaky' ? 1 + ((id.length + Number(id.at(-1))) % 2) : 0
  const body: Body = { id, kind, failures, padding: '' }
  const missing = Math.max(0, BYTES - JSON.stringify(body).length)
  return Buffer.from(JSON.stringify({ ...body, padding: '.'.repeat(missing) }))
}

/** The bytes are those that were made for this message. */
export function isAsSent(id: string, bytes: Buffer): boolean {
  try {
    const body = JSON.parse(bytes.toString()) as Body
    return body.id === id && bytes.equals(bodyOf(body))
  } catch {
    return false
  }
}
