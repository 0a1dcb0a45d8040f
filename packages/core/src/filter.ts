import type { Delivery } from './delivery.ts'
import type { Failure } from './failure.ts'

/** A message that is about to become a dead letter. */
export interface DeadLetterCandidate {
  readonly delivery: Delivery
  readonly failure: Failure
}

/** Matches the type of a message, or its source when it has no type: exact text, pattern, or a function. */
export type Matcher = string | RegExp | ((candidate: DeadLetterCandidate) => boolean)

/** Which messages are kept after giving up. `drop` wins over `keep`, and `keep` over `keepIf`. The default keeps all. */
export interface DeadLetterFilter {
  readonly drop: readonly Matcher[]
  readonly keep: readonly Matcher[]
  readonly keepIf: ((candidate: DeadLetterCandidate) => boolean) | undefined
}

export const KEEP_ALL: DeadLetterFilter = Object.freeze({
  drop: Object.freeze([]),
  keep: Object.freeze([]),
  keepIf: undefined,
})

/** Returns true when the message must be kept as a dead letter. A filter that throws keeps it, because a loss is worse. */
export function isKept(filter: DeadLetterFilter, candidate: DeadLetterCandidate): boolean {
  try {
    if (filter.drop.some((matcher) => matches(matcher, candidate))) return false
    if (isAlwaysKept(filter, candidate)) return true
    return filter.keepIf?.(candidate) ?? true
  } catch {
    return true
  }
}

/** Returns true when the policy forbids dropping this message. */
export function isAlwaysKept(filter: DeadLetterFilter, candidate: DeadLetterCandidate): boolean {
  try {
    return filter.keep.some((matcher) => matches(matcher, candidate))
  } catch {
    return true
  }
}

function matches(matcher: Matcher, candidate: DeadLetterCandidate): boolean {
  // Compared with true, because a promise is truthy.
  if (typeof matcher === 'function') return matcher(candidate) === true
  const name = candidate.delivery.type ?? candidate.delivery.source
  // `search` ignores lastIndex: a pattern with the g flag must give the same result each time.
  return typeof matcher === 'string' ? name === matcher : name.search(matcher) >= 0
}
