/** The kind of a message. The checker derives from it where the message must end. */
export type Kind =
  /** The handler succeeds. */
  | 'good'
  /** Its dependency fails for its first one or two runs. */
  | 'flaky'
  /** Succeeds when the dependency is up; a consumer can be configured to see it as down. */
  | 'outage'
  /** Always rejected by a business rule. */
  | 'business'
  /** The same, and as large as the server allows. */
  | 'large'
  /** Fails in the same way every time. */
  | 'repeats'
  /** Kills the process that runs it. */
  | 'killer'
  /** Fails once and is retried soon, or in ten minutes. */
  | 'soon'
  | 'later'

/** Where a message must be at the end. */
export type End = 'effect' | 'dlq' | 'quarantine' | 'delay'

export const END_OF: Readonly<Record<Kind, End>> = {
  good: 'effect',
  flaky: 'effect',
  outage: 'effect',
  soon: 'effect',
  business: 'dlq',
  large: 'dlq',
  repeats: 'quarantine',
  killer: 'quarantine',
  later: 'delay',
}

export interface Body {
  readonly id: string
  readonly kind: Kind
  /** Number of failed runs before a success, for `flaky`. */
  readonly failures: number
  readonly padding: string
}

export interface PlannedMessage {
  readonly id: string
  readonly kind: Kind
}

/** Number of messages of each kind in a hundred; the rest is good. */
export type Mix = Readonly<Partial<Record<Kind, number>>>

/** Every path of a hand-off is used all the time, and most messages succeed, as in production. */
export const USUAL_MIX: Mix = { flaky: 12, business: 4, repeats: 2 }

/** Returns a plan of messages in which the kinds are spread evenly. */
export function plan(run: string, count: number, mix: Mix): readonly PlannedMessage[] {
  const kinds = Object.entries(mix).flatMap(([kind, share]) =>
    Array.from({ length: share }, () => kind as Kind),
  )
  return Array.from({ length: count }, (_, index) => ({
    id: `${run}/${index}`,
    // 37 has no common factor with 100, so every hundred contains each kind, spread evenly.
    kind: kinds[(index * 37) % 100] ?? 'good',
  }))
}

/** About 200 bytes, the size of a small order. */
const BYTES = 200
/** The default limit of a Kafka topic, 1,048,588 bytes, less 208 for the record around the value. */
const LARGE_BYTES = 1_048_380

export function bodyOf({ id, kind }: PlannedMessage): Buffer {
  const failures = kind === 'flaky' ? 1 + ((id.length + Number(id.at(-1))) % 2) : 0
  const body: Body = { id, kind, failures, padding: '' }
  const size = kind === 'large' ? LARGE_BYTES : BYTES
  const missing = Math.max(0, size - JSON.stringify(body).length)
  return Buffer.from(JSON.stringify({ ...body, padding: '.'.repeat(missing) }))
}

/** Returns whether the bytes are those created for this message. */
export function isAsSent(id: string, bytes: Buffer): boolean {
  try {
    const body = JSON.parse(bytes.toString()) as Body
    return body.id === id && bytes.equals(bodyOf(body))
  } catch {
    return false
  }
}
