import { cycleFromReport, type FailureClass, type FailureRecord } from '@redrive/core'
import type { DeadLetterSource, DrainedBatch, DrainedDeadLetter } from '@redrive/runtime'
import { CommandError, EXIT } from '../exit.ts'

/** A queue, topic or outbox to peek into, without a server. */
export interface PeekTarget {
  readonly source: Pick<DeadLetterSource, 'depth' | 'drain'>
  /** A sentence about what a peek changes at the broker. Undefined: nothing. */
  readonly trace: string | undefined
  /** Called for an empty target. Returns an error message if the target does not exist. */
  readonly missing?: () => Promise<string | undefined>
  /** Returns why `limit` of `total` messages should not be read. */
  readonly refuseSome?: (limit: number, total: number) => string | undefined
  /** Returns why no more messages should be read, judged by the first one. */
  readonly refuseMore?: (first: DrainedDeadLetter) => string | undefined
  /** Releases everything and restores the previous state, also after an error. */
  readonly close: () => Promise<void>
}

export interface PeekResult {
  /** Number of messages in the target. */
  readonly total: number
  readonly deadLetters: readonly DrainedDeadLetter[]
  /** Why fewer messages were read than requested. */
  readonly refusal: string | undefined
}

/**
 * Reads messages and returns them to the queue. Each message is read once, because a broker may count
 * deliveries. The first message is read alone: its delivery count shows whether reading the others is safe.
 */
export async function look(
  target: PeekTarget,
  limit: number,
  isForced: boolean,
): Promise<PeekResult> {
  const { source } = target
  const total = await source.depth()
  if (total === 0) await expectExists(target)
  const tooMany = isForced ? undefined : target.refuseSome?.(limit, total)
  if (tooMany !== undefined) return { total, deadLetters: [], refusal: tooMany }
  const batches: DrainedBatch[] = []
  try {
    const first = await source.drain({ limit: 1 })
    batches.push(first)
    const [head] = first.deadLetters
    const refusal = head === undefined || isForced ? undefined : target.refuseMore?.(head)
    if (refusal === undefined && head !== undefined && limit > 1) {
      batches.push(await source.drain({ limit: limit - 1 }))
    }
    return { total, deadLetters: batches.flatMap(({ deadLetters }) => deadLetters), refusal }
  } finally {
    // Returned in the order in which they were read. This keeps the order of the queue.
    for (const batch of batches) await batch.abandon()
  }
}

/** Throws if the target does not exist. A missing target looks the same as an empty one. */
async function expectExists({ missing }: PeekTarget): Promise<void> {
  const message = await missing?.()
  if (message !== undefined) throw new CommandError(EXIT.notFound, message)
}

/** Similar failures, grouped as in the catalog. */
export interface PeekedGroup {
  readonly signature: string
  readonly class: FailureClass
  readonly code: string | undefined
  readonly message: string
  readonly count: number
  readonly firstFailedAt: number | undefined
  readonly lastFailedAt: number | undefined
}

/** Returns the last failure. Without a history, the same rules derive class and signature from the reason. */
export function lastFailure({ delivery, reason }: DrainedDeadLetter): FailureRecord {
  const { history, firstFailedAt, attempts } = delivery.cycle
  const report = { type: undefined, message: reason, stack: undefined, at: firstFailedAt, attempts }
  return (history.at(-1) ?? cycleFromReport(report).history[0]) as FailureRecord
}

/** Groups dead letters by signature, largest group first. */
export function groupsOf(deadLetters: readonly DrainedDeadLetter[]): readonly PeekedGroup[] {
  const groups = new Map<string, PeekedGroup>()
  for (const one of deadLetters) {
    const { signature, code, message, at, class: kind } = lastFailure(one)
    const known = groups.get(signature)
    const times = [known?.firstFailedAt, known?.lastFailedAt, at || undefined].filter(
      (time) => time !== undefined,
    )
    groups.set(signature, {
      signature,
      class: kind,
      code: known?.code ?? code,
      message: known?.message ?? message,
      count: (known?.count ?? 0) + 1,
      firstFailedAt: times.length === 0 ? undefined : Math.min(...times),
      lastFailedAt: times.length === 0 ? undefined : Math.max(...times),
    })
  }
  return [...groups.values()].sort((one, other) => other.count - one.count)
}
