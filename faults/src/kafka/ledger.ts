import type { Violation } from '../evidence/evidence.ts'
import type { Entry } from '../evidence/history.ts'
import { finishedAbove, type Range, type StoredCommit } from './wire-format.ts'

/**
 * Compares the commits of consumers with what they did. It uses three independent sources: the
 * cluster's log of commits, the requests of the processes, and the records of the handlers.
 */
export function checkLedger(
  entries: readonly Entry[],
  commits: readonly StoredCommit[],
): readonly Violation[] {
  return [
    ...checkThere(commits),
    ...checkGrowth(commits),
    ...checkFinished(entries, commits),
    ...checkOwned(entries),
  ]
}

/** Checks that there are commits. Without any, the rules prove nothing. */
const checkThere = (commits: readonly StoredCommit[]): readonly Violation[] =>
  commits.length > 0 ? [] : [{ rule: 'scenario', text: 'nothing was ever committed' }]

interface State {
  readonly mark: number
  readonly above: readonly Range[]
}

const NOTHING: State = { mark: 0, above: [] }

const stateOf = (commit: StoredCommit): State => ({
  mark: commit.mark,
  above: finishedAbove(commit),
})

const byPlace = (commits: readonly StoredCommit[]) =>
  Map.groupBy(commits, ({ place }) => place).entries()

/**
 * Checks that finished records stay finished. A commit with an older state would let them run
 * again.
 */
function checkGrowth(commits: readonly StoredCommit[]): readonly Violation[] {
  const violations: Violation[] = []
  for (const [place, ofPlace] of byPlace(commits)) {
    let before = NOTHING
    for (const commit of ofPlace) {
      const now = stateOf(commit)
      const [taken] = missingIn(now, before)
      if (taken !== undefined) {
        const text = `${place}: ${taken[0]} to ${taken[1] - 1} were finished, and a later commit reverts that`
        violations.push({ rule: 'not fenced', text })
      }
      before = now
    }
  }
  return violations
}

/** Returns the ranges that are finished in `before` and not in `now`. */
function missingIn(now: State, before: State): readonly Range[] {
  const missing: Range[] = []
  for (const [from, to] of [[0, before.mark] as const, ...before.above]) {
    let at = Math.max(from, now.mark)
    for (const [covered, end] of now.above) {
      if (at >= to) break
      if (covered > at) missing.push([at, Math.min(to, covered)])
      at = Math.max(at, end)
    }
    if (at < to) missing.push([at, to])
  }
  return missing.filter(([from, to]) => from < to)
}

/** Checks that no record is committed before its handler has ended. */
function checkFinished(
  entries: readonly Entry[],
  commits: readonly StoredCommit[],
): readonly Violation[] {
  const endedAt = endsIn(entries)
  const violations: Violation[] = []
  for (const [place, ofPlace] of byPlace(commits)) {
    let before = NOTHING
    for (const commit of ofPlace) {
      const now = stateOf(commit)
      for (const [from, to] of missingIn(before, now)) {
        for (let offset = from; offset < to; offset++) {
          const ended = endedAt.get(`${place}/${offset}`)
          if (ended === undefined || ended.at <= commit.at) continue
          const text = `${place}/${offset} was committed ${ended.at - commit.at} ms before its handler ended`
          violations.push({ rule: 'committed early', id: ended.id, text })
        }
      }
      before = now
    }
  }
  return violations
}

/**
 * Returns when each record first ended, by its position. When two copies of a message run in one process at the same
 * time, an end can belong to either, so neither is judged.
 */
function endsIn(
  entries: readonly Entry[],
): ReadonlyMap<string, { readonly id: string; readonly at: number }> {
  const running = new Map<string, Set<string>>()
  const ambiguous = new Set<string>()
  const ends = new Map<string, { readonly id: string; readonly at: number }>()
  for (const entry of entries) {
    if (entry.what === 'delivered') {
      const key = `${entry.by} ${entry.id}`
      running.set(key, (running.get(key) ?? new Set()).add(entry.position))
    }
    if (entry.what !== 'effect' && entry.what !== 'failed') continue
    const { id, at, by } = entry
    const positions = running.get(`${by} ${id}`) ?? new Set<string>()
    for (const position of positions) {
      if (positions.size > 1) ambiguous.add(position)
      else if (!ends.has(position)) ends.set(position, { id, at })
    }
    if (positions.size === 1) running.delete(`${by} ${id}`)
  }
  for (const position of ambiguous) ends.delete(position)
  return ends
}

/** Checks that only the owner of a partition gets a confirmation of its commit. */
function checkOwned(entries: readonly Entry[]): readonly Violation[] {
  const rounds = new Map<string, string>()
  const givenTo = new Map<string, Set<string>>()
  const assigned = entries.flatMap((entry) => (entry.what === 'assigned' ? [entry] : []))
  for (const { member, generation, places } of assigned) {
    for (const place of places) {
      rounds.set(`${generation} ${place}`, member)
      givenTo.set(place, (givenTo.get(place) ?? new Set()).add(`${member} ${generation}`))
    }
  }
  const accepted = entries.flatMap((entry) =>
    entry.what === 'commit' && entry.isAccepted ? [entry] : [],
  )
  return accepted.flatMap(({ by, member, generation, places }) =>
    places.flatMap((place): readonly Violation[] => {
      const owner = rounds.get(`${generation} ${place}`)
      // No member owns it in this generation: the previous owner commits its progress and releases
      // it.
      const had = [...(givenTo.get(place) ?? [])].some((one) => one.startsWith(`${member} `))
      if (owner === member || (owner === undefined && had)) return []
      const text = `${by} committed for ${place} in generation ${generation}, when its owner was ${owner ?? 'no member'}`
      return [{ rule: 'not fenced', text }]
    }),
  )
}
