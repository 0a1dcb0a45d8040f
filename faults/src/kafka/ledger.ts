import type { Violation } from '../evidence.ts'
import type { Entry } from '../history.ts'
import { finishedAbove, type Range, type StoredCommit } from './wire-format.ts'

/**
 * What consumers told their group, held against what they did. It comes from three places that know
 * nothing of each other: the cluster's own log of commits, the requests as they left the processes, and
 * what handlers wrote down.
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

/** Rules that hold for nothing prove nothing. */
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

/** What was finished stays finished: somebody else's older view would have it run again. */
function checkGrowth(commits: readonly StoredCommit[]): readonly Violation[] {
  const violations: Violation[] = []
  for (const [place, ofPlace] of byPlace(commits)) {
    let before = NOTHING
    for (const commit of ofPlace) {
      const now = stateOf(commit)
      const [taken] = missingIn(now, before)
      if (taken !== undefined) {
        const text = `${place}: ${taken[0]} to ${taken[1] - 1} were finished, and a later commit takes that back`
        violations.push({ rule: 'not fenced', text })
      }
      before = now
    }
  }
  return violations
}

/** What the one has finished and the other has not. */
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

/** Nothing is committed before a handler has run to its end. */
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

/** When a record was first run to an end, by its position. */
function endsIn(
  entries: readonly Entry[],
): ReadonlyMap<string, { readonly id: string; readonly at: number }> {
  const positions = new Map<string, string>()
  const ends = new Map<string, { readonly id: string; readonly at: number }>()
  for (const entry of entries) {
    if (entry.what === 'delivered') positions.set(`${entry.by} ${entry.id}`, entry.position)
    if (entry.what !== 'effect' && entry.what !== 'failed') continue
    const { id, at, by } = entry
    const position = positions.get(`${by} ${id}`)
    if (position !== undefined && !ends.has(position)) ends.set(position, { id, at })
  }
  return ends
}

/** Only the owner of a partition may be told that its commit counts. */
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
      // Nobody's in this round: whoever had it before says how far it came, and lets go of it.
      const had = [...(givenTo.get(place) ?? [])].some((one) => one.startsWith(`${member} `))
      if (owner === member || (owner === undefined && had)) return []
      const text = `${by} committed for ${place} in round ${generation}, when it was ${owner ?? 'nobody'}'s`
      return [{ rule: 'not fenced', text }]
    }),
  )
}
