import { type AttemptRecord, cycleOfTold, type FailureClass } from '@redrive/core'
import type { DeadLetterSource, DrainedBatch, DrainedDeadLetter } from '@redrive/runtime'
import { CommandError, EXIT } from '../exit.ts'

/** A place to look at, without a server. */
export interface Place {
  readonly source: DeadLetterSource
  /** What looking changes all the same, in a sentence; undefined: nothing. */
  readonly trace: string | undefined
  /** Asked when nothing is there: a sentence when there is no such place at all. */
  readonly missing?: () => Promise<string | undefined>
  /** Why it is better not to look at so many of so many. */
  readonly refuseSome?: (most: number, total: number) => string | undefined
  /** Why it is better not to look at more, from what the first in turn has been through. */
  readonly refuseMore?: (first: DrainedDeadLetter) => string | undefined
  /** Leaves everything as it was, whatever happened. */
  readonly close: () => Promise<void>
}

export interface Looked {
  /** How many there are. */
  readonly total: number
  readonly deadLetters: readonly DrainedDeadLetter[]
  /** Why not all that were asked for were looked at. */
  readonly refusal: string | undefined
}

/**
 * Takes them in hand, and gives them back. Each is taken once: a broker may count how often. The first is
 * taken alone, because what it has been through tells what looking at the others would cost.
 */
export async function look(place: Place, most: number, isEvenSo: boolean): Promise<Looked> {
  const { source } = place
  const total = await source.depth()
  if (total === 0) await expectThere(place)
  const tooMany = isEvenSo ? undefined : place.refuseSome?.(most, total)
  if (tooMany !== undefined) return { total, deadLetters: [], refusal: tooMany }
  const inHand: DrainedBatch[] = []
  try {
    const first = await source.drain({ most: 1 })
    inHand.push(first)
    const [head] = first.deadLetters
    const refusal = head === undefined || isEvenSo ? undefined : place.refuseMore?.(head)
    if (refusal === undefined && head !== undefined && most > 1) {
      inHand.push(await source.drain({ most: most - 1 }))
    }
    return { total, deadLetters: inHand.flatMap(({ deadLetters }) => deadLetters), refusal }
  } finally {
    // In the order they were taken, so that they are back in the order they were in.
    for (const batch of inHand) await batch.abandon()
  }
}

/** What is not there looks as if it were empty. */
async function expectThere({ missing }: Place): Promise<void> {
  const told = await missing?.()
  if (told !== undefined) throw new CommandError(EXIT.notFound, told)
}

/** Alike failures, as the catalog would group them. */
export interface PeekedGroup {
  readonly signature: string
  readonly class: FailureClass
  readonly code: string | undefined
  readonly message: string
  readonly count: number
  readonly firstFailedAt: number | undefined
  readonly lastFailedAt: number | undefined
}

/** What it failed with last. One without a history is classed and signed by its reason, with the same rules. */
export function lastAttempt({ delivery, reason }: DrainedDeadLetter): AttemptRecord {
  const { history, firstFailedAt, attempts } = delivery.cycle
  const told = { type: undefined, message: reason, stack: undefined, at: firstFailedAt, attempts }
  return (history.at(-1) ?? cycleOfTold(told).history[0]) as AttemptRecord
}

/** Largest first. */
export function groupsOf(deadLetters: readonly DrainedDeadLetter[]): readonly PeekedGroup[] {
  const groups = new Map<string, PeekedGroup>()
  for (const one of deadLetters) {
    const { signature, code, message, at, class: kind } = lastAttempt(one)
    const known = groups.get(signature)
    const moments = [known?.firstFailedAt, known?.lastFailedAt, at || undefined].filter(
      (moment) => moment !== undefined,
    )
    groups.set(signature, {
      signature,
      class: kind,
      code: known?.code ?? code,
      message: known?.message ?? message,
      count: (known?.count ?? 0) + 1,
      firstFailedAt: moments.length === 0 ? undefined : Math.min(...moments),
      lastFailedAt: moments.length === 0 ? undefined : Math.max(...moments),
    })
  }
  return [...groups.values()].sort((one, other) => other.count - one.count)
}
