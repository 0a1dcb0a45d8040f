import type { Tone } from '../components/icon.tsx'
import { useShellQuery } from '../data/live.ts'
import { openGroupsQuery, overviewQuery, runsQuery, sourcesQuery } from '../data/queries.ts'
import { countText } from '../words/numbers.ts'
import { decisionsOf } from '../words/verdict.ts'
import type { NavItem } from './nav.ts'

export interface NavCount {
  readonly text: string
  readonly tone: Tone
}

/** 10 s: the sidebar is a reminder. The screens themselves are faster. */
const EVERY_MS = 10_000

export const ACTIVE_STATES = ['running', 'paused', 'planned'] as const

/** Returns the numbers next to the names of screens. Zero is not shown. */
export function useNavCounts(): Readonly<Partial<Record<NavItem['name'], NavCount>>> {
  const runs = useShellQuery(runsQuery(ACTIVE_STATES, 50), EVERY_MS).data ?? []
  const sources = useShellQuery(sourcesQuery, EVERY_MS).data ?? []
  const groups = useShellQuery(openGroupsQuery, EVERY_MS).data?.groups ?? []
  const alerts = useShellQuery(overviewQuery, EVERY_MS).data?.alerts ?? []
  const stopped = sources.filter(({ state: { status } }) => isStopped(status)).length
  const paused = runs.filter(({ state }) => state === 'paused').length
  const running = runs.filter(({ state }) => state === 'running').length
  const planned = runs.filter(({ state }) => state === 'planned').length
  return {
    ...shown('groups', decisionsOf(groups, alerts).length, '', 'bad'),
    ...(paused > 0
      ? { replays: { text: `${countText(paused)} paused`, tone: 'warn' } }
      : shown('replays', running, 'running', 'run')),
    ...shown('approvals', planned, '', 'idle'),
    ...shown('sources', stopped, 'stopped', 'bad'),
  }
}

const isStopped = (status: string) => status === 'unreachable' || status === 'missing_queue'

const shown = (name: NavItem['name'], count: number, word: string, tone: Tone) =>
  count === 0 ? {} : { [name]: { text: `${countText(count)} ${word}`.trim(), tone } }
