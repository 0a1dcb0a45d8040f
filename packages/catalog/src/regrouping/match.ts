/** Conditions of a rule. A dead letter must match all of them. */
export interface FingerprintMatch {
  /** Failure class. Default: any. */
  readonly class?: string
  /** Error code of the failure. Default: any. */
  readonly code?: string
  /** Event type of the message. Default: any. */
  readonly type?: string
  /** Type of the error, such as `TypeError`. Default: any. */
  readonly errorType?: string
  /** Handler that failed. Default: any. */
  readonly handler?: string
  /** Part of the failure message, ignoring case; `*` matches any characters. Default: any. */
  readonly text?: string
}

/** Conditions of a rule or a split. */
export interface Conditions extends FingerprintMatch {
  /** Parts of the failure message, ignoring case, without patterns. */
  readonly texts?: readonly string[]
  /** Exact values of headers for display, by name. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The values of a dead letter that rules compare. */
export interface Traits {
  readonly class: string
  readonly code: string | null
  readonly type: string | null
  readonly errorType: string | null
  readonly handler: string | null
  /** The failure message as it is stored: at most 1,000 characters. */
  readonly message: string
  /** Returns the headers for display. Only splits compare them. Default: none. */
  readonly headers?: () => Readonly<Record<string, unknown>>
}

const SAME = ['class', 'code', 'type', 'errorType', 'handler'] as const

export function isMatch(match: Conditions, traits: Traits): boolean {
  const { text, texts = [], headers } = match
  return (
    SAME.every((name) => match[name] === undefined || match[name] === traits[name]) &&
    (text === undefined || containsPattern(traits.message, text)) &&
    texts.every((part) => traits.message.toLowerCase().includes(part.toLowerCase())) &&
    (headers === undefined || hasHeaders(traits.headers?.() ?? {}, headers))
  )
}

const hasHeaders = (
  found: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, string>>,
): boolean =>
  Object.entries(wanted).every(
    ([name, value]) => Object.hasOwn(found, name) && found[name] === value,
  )

/**
 * Returns whether a text contains a pattern, ignoring case. `*` matches any characters. The parts between the stars are
 * searched from left to right, and each first place is kept: a later place never allows more. So no pattern needs a second
 * attempt, and the cost is at most the length of the text times the length of the pattern.
 */
export function containsPattern(text: string, pattern: string): boolean {
  const lower = text.toLowerCase()
  let from = 0
  for (const part of pattern.toLowerCase().split('*')) {
    const at = lower.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  return true
}
