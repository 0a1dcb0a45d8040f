import type { Output } from '@redrive/api'
import { type Action, ACTIONS } from '@redrive/api/enums'
import { quoted } from './equivalents.ts'

type Token = Output<'listTokens'>['tokens'][number]
type Session = Output<'listSessions'>['sessions'][number]
type Me = Output<'me'>

// biome-ignore format: one row per permission
export const ACTION_NOTES: Readonly<Record<Action, string>> = {
  view: 'groups, counts, runs',
  view_payload: 'masked bodies',
  view_unmasked: 'unmasked bodies',
  triage: 'assign, mute, resolve, comment',
  replay: 'plan and pause runs',
  edit: 'change messages in a replay',
  approve: 'approve and start runs',
  discard: 'discard, restore, merge, split',
  export: 'export dead letters',
  configure: 'schemas, auto replay, audit',
}

/** Returns the permissions that the caller has on any source. A token cannot have others. */
export const ownActions = ({ grants }: Pick<Me, 'grants'>): readonly Action[] =>
  ACTIONS.filter((action) => grants.some(({ actions }) => actions.includes(action)))

/** Returns the names in a text, separated by commas or spaces. */
export const namesIn = (text: string): readonly string[] =>
  text.split(/[\s,]+/).filter((name) => name !== '')

export interface TokenForm {
  readonly name: string
  readonly actions: readonly Action[]
  readonly sources: string
  readonly days: string
  readonly isAgent: boolean
}

export const DAYS_MAX = 90

/** Returns what is missing in the form; undefined when it can be sent. */
export function tokenProblem({ name, actions, sources, days }: TokenForm): string | undefined {
  if (name.trim() === '') return 'Enter a name.'
  if (actions.length === 0) return 'Choose a permission.'
  if (namesIn(sources).length === 0) return 'Enter a source, or * for all.'
  const count = Number(days)
  return Number.isInteger(count) && count >= 1 && count <= DAYS_MAX
    ? undefined
    : `Enter 1 to ${DAYS_MAX} days.`
}

/** Returns the command that creates the token. */
export function tokenCommand({ name, actions, sources, days, isAgent }: TokenForm): string {
  const shown = name.trim() === '' ? 'NAME' : quoted(name.trim())
  const names = namesIn(sources)
  return [
    `redrive token create ${shown}`,
    `--allow ${actions.length === 0 ? 'ACTION' : actions.join(' ')}`,
    `--source ${names.length === 0 ? 'SOURCE' : names.map(quoted).join(' ')}`,
    `--days ${days === '' ? 'DAYS' : days}`,
    ...(isAgent ? ['--agent'] : []),
  ].join(' ')
}

/** A week: enough time to replace a token before a program stops working. */
const SOON_MS = 7 * 86_400_000

export const expiresSoon = ({ expiresAt }: Pick<Token, 'expiresAt'>, now: number): boolean =>
  expiresAt - now < SOON_MS

/** A user with all of their sessions and tokens. */
export interface Person {
  readonly id: string
  /** Display name; undefined if the user has tokens only. */
  readonly name: string | undefined
  readonly sessions: readonly Session[]
  readonly tokens: readonly Token[]
  /** Epoch ms of the last request; undefined if there was none. */
  readonly lastUsedAt: number | undefined
}

/** Returns the users that have access, the latest request first. */
export function peopleOf(
  sessions: readonly Session[],
  tokens: readonly Token[],
): readonly Person[] {
  const ids = [...new Set([...sessions, ...tokens].map(({ person }) => person))]
  return ids
    .map((id) => {
      const own = sessions.filter(({ person }) => person === id)
      const ownTokens = tokens.filter(({ person }) => person === id)
      const used = [...own, ...ownTokens].flatMap(({ lastUsedAt }) => lastUsedAt ?? [])
      return {
        id,
        name: own[0]?.name,
        sessions: own,
        tokens: ownTokens,
        lastUsedAt: used.length === 0 ? undefined : Math.max(...used),
      }
    })
    .toSorted((one, other) => (other.lastUsedAt ?? 0) - (one.lastUsedAt ?? 0))
}
