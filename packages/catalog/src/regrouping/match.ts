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

/** The values of a dead letter that rules compare. */
export interface Traits {
  readonly class: string
  readonly code: string | null
  readonly type: string | null
  readonly errorType: string | null
  readonly handler: string | null
  /** The failure message as it is stored: at most 1,000 characters. */
  readonly message: string
}

const SAME = ['class', 'code', 'type', 'errorType', 'handler'] as const

export function isMatch(match: FingerprintMatch, traits: Traits): boolean {
  const { text } = match
  return (
    SAME.every((name) => match[name] === undefined || match[name] === traits[name]) &&
    (text === undefined || containsPattern(traits.message, text))
  )
}

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
