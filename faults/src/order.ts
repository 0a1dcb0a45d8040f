import type { Violation } from './evidence.ts'
import type { Entry } from './history.ts'

/** The life of one message, as far as order is concerned; a moment that never came is infinite. */
interface Life {
  readonly id: string
  attemptedAt: number
  acknowledgedAt: number
  startedAt: number
  /** Its last word: an effect, or the failure after which it was given up. */
  endedAt: number
}

/**
 * Within a lane: what was accepted before another was begun to be sent runs to its end before that one
 * starts. Of two that were sent at the same time either may be first; never both at once.
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
    return isInOrder ? [] : [{ rule: 'out of order', id, text: `began before ${one.id} was done` }]
  }
  const isDuring = one.startedAt < other.startedAt && other.startedAt < one.endedAt
  return isDuring ? [{ rule: 'out of order', id, text: `ran together with ${one.id}` }] : []
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
