import type { Failure } from '@redrive/core'

/** The last failure of a dependency. */
export interface LastFailure extends Pick<Failure, 'class' | 'type' | 'code' | 'message'> {
  readonly at: number
}

/** What this process has observed of a dependency since it started, over all consumers. */
export interface DependencyCounts {
  /** Attempts that ended. */
  readonly calls: number
  readonly failures: number
  /** Messages that did not run, or were returned after their run, because the breaker was open. */
  readonly rejections: number
  /** How often the breaker opened, closed or was isolated. */
  readonly transitions: number
  readonly lastFailure: LastFailure | undefined
}

export const NO_COUNTS: DependencyCounts = Object.freeze({
  calls: 0,
  failures: 0,
  rejections: 0,
  transitions: 0,
  lastFailure: undefined,
})

export function addFailure(
  counts: DependencyCounts,
  failure: Failure,
  at: number,
): DependencyCounts {
  const { class: failureClass, type, code, message } = failure
  return {
    ...counts,
    calls: counts.calls + 1,
    failures: counts.failures + 1,
    lastFailure: { at, class: failureClass, type, code, message },
  }
}
