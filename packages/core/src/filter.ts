import type { Delivery } from './delivery.ts'
import type { Failure } from './failure.ts'

/** What is about to become a dead letter. */
export interface DeadLetterCandidate {
  readonly delivery: Delivery
  readonly failure: Failure
}

/** Matches a message type (or its source when it has none): exact text, pattern, or a function. */
export type Matcher = string | RegExp | ((candidate: DeadLetterCandidate) => boolean)

/** Which messages are worth keeping when we give up. `never` beats `always` beats `when`; the default keeps. */
export interface DeadLetterFilter {
  readonly never: readonly Matcher[]
  readonly always: readonly Matcher[]
  readonly when: ((candidate: DeadLetterCandidate) => boolean) | undefined
}

export const KEEP_ALL: DeadLetterFilter = Object.freeze({
  never: Object.freeze([]),
  always: Object.freeze([]),
  when: undefined,
})

/** True when the message must be kept as a dead letter. A filter that throws keeps it: losing is worse than keeping. */
export function isKept(filter: DeadLetterFilter, candidate: DeadLetterCandidate): boolean {
  try {
    if (filter.never.some((matcher) => matches(matcher, candidate))) return false
    if (isAlwaysKept(filter, candidate)) return true
    return filter.when?.(candidate) ?? true
  } catch {
    return true
  }
}

/** True when the policy says that this one must never be dropped. */
export function isAlwaysKept(filter: DeadLetterFilter, candidate: DeadLetterCandidate): boolean {
  try {
    return filter.always.some((matcher) => matches(matcher, candidate))
  } catch {
    return true
  }
}

function matches(matcher: Matcher, candidate: DeadLetterCandidate): boolean {
  // Compared, not trusted: a promise would be truthy.
  if (typeof matcher === 'function') return matcher(candidate) === true
  const name = candidate.delivery.type ?? candidate.delivery.source
  // `search` ignores lastIndex: a pattern with the g flag must not answer differently each time.
  return typeof matcher === 'string' ? name === matcher : name.search(matcher) >= 0
}
