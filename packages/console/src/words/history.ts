import type { DeadLetter } from '@redrive/api'

type Failure = DeadLetter['history'][number]

/** Failures in a row with the same error. */
export interface FoldedFailure {
  readonly from: Failure
  /** The last one; equal to `from` for a single failure. */
  readonly to: Failure
  readonly count: number
}

const isSame = (one: Failure, other: Failure) =>
  one.signature === other.signature && one.message === other.message && one.code === other.code

/** Returns the failures of a cycle, newest first. Equal ones in a row are one entry. */
export function foldFailures(history: readonly Failure[]): readonly FoldedFailure[] {
  const folded: FoldedFailure[] = []
  for (const failure of history) {
    const last = folded.at(-1)
    if (last !== undefined && isSame(last.to, failure)) {
      folded[folded.length - 1] = { ...last, to: failure, count: last.count + 1 }
    } else folded.push({ from: failure, to: failure, count: 1 })
  }
  return folded.toReversed()
}

/** Returns the title of an entry: Run 3 failed, Runs 2–4 failed with the same error. */
export function failureTitle({ from, to, count }: FoldedFailure): string {
  if (count === 1) return `Run ${from.number} failed`
  return `Runs ${from.number}–${to.number} failed with the same error`
}
