import type { Group, Output } from '@redrive/api'
import { countOf, countText, shareText } from './numbers.ts'
import { isGrowing } from './suggestion.ts'
import { durationText } from './times.ts'

/** From this number of open dead letters on, a group needs a decision without an alert. */
const MANY = 100

type Alerts = Output<'overview'>['alerts']
type Sources = Output<'listSources'>['sources']

/** Returns the open groups that need a decision: an alert names them, or they are large. Largest first. */
export function decisionsOf(groups: readonly Group[], alerts: Alerts): readonly Group[] {
  const named = new Set(alerts.map(({ group }) => group))
  return groups
    .filter(({ state, openCount }) => state === 'open' && openCount > 0)
    .filter(({ id, openCount }) => openCount >= MANY || named.has(id))
    .toSorted((one, other) => other.openCount - one.openCount)
}

export interface VerdictFacts {
  readonly depth: number
  readonly decisions: readonly Group[]
  readonly sources: Sources
  readonly now: number
}

export interface Verdict {
  readonly isCalm: boolean
  readonly title: string
  readonly sentences: readonly string[]
}

/** Returns whether anything is wrong, and what is known about it. */
export function verdictOf(facts: VerdictFacts): Verdict {
  const { depth, decisions } = facts
  const count = decisions.length
  if (depth === 0) return { isCalm: true, title: 'No open dead letters.', sentences: calm(facts) }
  const need =
    count === 0
      ? 'No group needs a decision.'
      : `${countOf(count, 'group')} ${count === 1 ? 'needs' : 'need'} a decision.`
  const letters = depth === 1 ? 'open dead letter' : 'open dead letters'
  return {
    isCalm: false,
    title: `${countText(depth)} ${letters}. ${need}`,
    sentences: [...shareOf(facts), ...growthOf(facts), ...stopped(facts.sources)],
  }
}

function shareOf({ depth, decisions, now }: VerdictFacts): readonly string[] {
  const [largest] = decisions
  if (largest === undefined || largest.openCount / depth < 0.5) return []
  const quiet = isGrowing(largest, now)
    ? ''
    : `, which has not failed for ${durationText(now - largest.lastSeenAt)}`
  const share = largest.openCount / depth
  return [`${share === 1 ? 'All' : shareText(share)} are in one group${quiet}.`]
}

function growthOf({ decisions, now }: VerdictFacts): readonly string[] {
  const growing = decisions.filter((group) => isGrowing(group, now)).length
  if (decisions.length === 0) return []
  if (growing === 0) return ['No group is growing.']
  return [`${countOf(growing, 'group')} ${growing === 1 ? 'is' : 'are'} still growing.`]
}

const STOPPED: readonly string[] = ['unreachable', 'missing_queue']

const stopped = (sources: Sources) =>
  sources
    .filter(({ state }) => STOPPED.includes(state.status))
    .map(({ source }) => `Ingest of ${source} stopped.`)

function calm({ sources, now }: VerdictFacts): readonly string[] {
  const problems = stopped(sources)
  const last = Math.max(0, ...sources.map(({ lastIngestedAt = 0 }) => lastIngestedAt))
  const connected = sources.filter(({ state }) => state.status === 'connected').length
  return [
    ...problems,
    ...(connected === sources.length && connected > 0
      ? [
          `${connected === 1 ? 'The source is' : `All ${countOf(connected, 'source')} are`} connected.`,
        ]
      : []),
    ...(last > 0 ? [`The last dead letter arrived ${durationText(now - last)} ago.`] : []),
  ]
}
