import type { Violation } from './evidence.ts'
import type { Entry } from './history.ts'

/** Times of one message that matter for the order; a time that never came is infinite. */
interface Life {
  readonly id: string
  attemptedAt: number
  acknowledgedAt: number
  startedAt: number
  /** Time of its last result: an effect, or the failure after which it was dead-lettered. */
  endedAt: number
}

/**
 * Checks the order within a lane. A message accepted before another one was sent must finish before
 * that one starts. If two were sent at the same time, either may be first, but they never run
 * concurrently.
 */
export function checkOrder(
  entries: readonly Entry[],
  laneOf: (id: string) => string | undefined,
): readonly Violation[] {
  const lanes = Map.groupBy(livesIn(entries).values(), ({ id }) => laneOf(id))
  lanes.delete(undefined)
  return [...lanes.values()].flatMap((lives) =>
    lives.flatMap((one) => lives.flatMap((other) => compare(one, other))),
  )
}

function compare(one: Life, other: Life): readonly Violation[] {
  if (one === other) return []
  const { id } = other
  if (one.acknowledgedAt < other.attemptedAt) {
    const isInOrder = one.endedAt <= other.startedAt
    return isInOrder
      ? []
      : [{ rule: 'out of order', id, text: `started before ${one.id} finished` }]
  }
  const isDuring = one.startedAt < other.startedAt && other.startedAt < one.endedAt
  return isDuring ? [{ rule: 'out of order', id, text: `ran concurrently with ${one.id}` }] : []
}

function livesIn(entries: readonly Entry[]): ReadonlyMap<string, Life> {
  const lives = new Map<string, Life>()
  for (const entry of entries) {
    if (entry.what === 'attempted') lives.set(entry.id, newLife(entry.id, entry.at))
    const life = 'id' in entry && entry.id !== undefined ? lives.get(entry.id) : undefined
    if (life === undefined) continue
    if (entry.what === 'acknowledged') life.acknowledgedAt = entry.at
    if (entry.what === 'handler_started') life.startedAt = Math.min(life.startedAt, entry.at)
    if (entry.what === 'effect' || entry.what === 'failed') life.endedAt = entry.at
  }
  return lives
}

const newLife = (id: string, attemptedAt: number): Life => ({
  id,
  attemptedAt,
  acknowledgedAt: Number.POSITIVE_INFINITY,
  startedAt: Number.POSITIVE_INFINITY,
  endedAt: Number.NEGATIVE_INFINITY,
})
