import type { AuditEntry } from '@redrive/api'
import { FilterError, filterWords } from '@redrive/api/filter'
import { countOf } from './numbers.ts'
import { shorten } from './peer.ts'

export interface AuditFilter {
  readonly person?: string
  readonly source?: string
  readonly operation?: string
  readonly subject?: string
}

// biome-ignore format: one row per key
export const AUDIT_KEYS: readonly { readonly name: keyof AuditFilter; readonly description: string }[] = [
  { name: 'person', description: 'Id of the user' },
  { name: 'source', description: 'Name of the source' },
  { name: 'operation', description: 'Operation of the API, such as approveReplay' },
  { name: 'subject', description: 'Id of a message, group, run or token' },
]

export type ParsedAudit = { readonly query: AuditFilter } | { readonly problem: string }

/** Reads the words of a filter for the audit log. Each field has one value, because the API compares with one. */
export function parseAudit(filter: string): ParsedAudit {
  try {
    return filterWords(filter).reduce<ParsedAudit>(
      (parsed, { field, value }) =>
        'problem' in parsed ? parsed : added(parsed.query, field, value),
      { query: {} },
    )
  } catch (error) {
    if (error instanceof FilterError) return { problem: error.message }
    throw error
  }
}

function added(query: AuditFilter, field: string | undefined, value: string): ParsedAudit {
  const key = AUDIT_KEYS.find(({ name }) => name === field)?.name
  if (key === undefined || value === '') {
    const names = AUDIT_KEYS.map(({ name }) => name).join(', ')
    return { problem: `The filter accepts the fields ${names}, such as operation:approveReplay.` }
  }
  if (query[key] !== undefined) return { problem: `"${key}" can have one value only.` }
  return { query: { ...query, [key]: value } }
}

/** An action: its result, and the entry that was written before it ran. */
export interface AuditRow {
  readonly entry: AuditEntry
  readonly requested?: AuditEntry
  /** Whether the action has no result. It may have been applied. */
  readonly hasNoResult: boolean
}

const RESULTS: readonly string[] = ['done', 'refused', 'failed']

/** Returns one row for each action, newest first. The entry before an action and its result are one row. */
export function auditRows(entries: readonly AuditEntry[]): readonly AuditRow[] {
  const rows: AuditRow[] = []
  const waiting = new Map<string, number>()
  for (const entry of entries) {
    const key = actionKey(entry)
    const at = entry.outcome === 'requested' ? waiting.get(key) : undefined
    const row = at === undefined ? undefined : rows[at]
    if (at !== undefined && row !== undefined) {
      rows[at] = { ...row, requested: entry }
      waiting.delete(key)
      continue
    }
    if (RESULTS.includes(entry.outcome)) waiting.set(key, rows.length)
    rows.push({ entry, hasNoResult: entry.outcome === 'requested' })
  }
  return rows
}

/** Both entries of an action have the id of its request. Actions outside of requests have none. */
const actionKey = ({ facts, person, operation }: AuditEntry): string =>
  typeof facts['request'] === 'string'
    ? `${facts['request']} ${operation}`
    : `${person} ${operation}`

const OPERATION_NAMES: Readonly<Record<string, string>> = {
  getPayload: 'Reveal body',
  getSetAsidePayload: 'Reveal set-aside body',
  getReplayChange: 'View change of a replay',
  login: 'Sign in',
  logout: 'Sign out',
}

/** Returns the name of an operation: `approveReplay` is "Approve replay". */
export function operationName(operation: string): string {
  const words = operation.replaceAll(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()
  return OPERATION_NAMES[operation] ?? words.slice(0, 1).toUpperCase() + words.slice(1)
}

/** Returns how the caller authenticated: session, token, agent. */
export const viaText = ({ via, facts }: AuditEntry): string =>
  facts['isAgent'] === true ? `${via}, agent` : via

/** Returns what the action was about: a short id, the number of messages, or the permission that was missing. */
export function subjectText({ subject, facts, outcome }: AuditEntry): string {
  if (outcome === 'denied' && typeof facts['action'] === 'string') return `needs ${facts['action']}`
  if (subject !== undefined) return subject.length > 12 ? subject.slice(-8) : subject
  const { ids, filter, sources } = facts
  if (Array.isArray(ids)) return countOf(ids.length, 'message')
  if (typeof filter === 'string') return shorten(filter, 60)
  return Array.isArray(sources) ? shorten(sources.join(', '), 60) : ''
}

/** Which page shows the subject of an operation. The first that fits. */
const PAGES: readonly (readonly [RegExp, (id: string) => string])[] = [
  [/SetAside/, (id) => `/sources/set-aside?entry=${id}`],
  [/Token|Session/, () => ''],
  [/Group/, (id) => `/groups/${id}`],
  [/Replay$|ReplayChange|ReplayItems/, (id) => `/replays/${id}`],
  [/DeadLetter|Payload/, (id) => `/messages/${id}`],
]

const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/

/** Returns the address of the subject's page, or undefined if it has none. */
export function subjectPath({ operation, subject }: AuditEntry): string | undefined {
  if (subject === undefined || !ID.test(subject)) return undefined
  const path = PAGES.find(([pattern]) => pattern.test(operation))?.[1](subject)
  return path === '' ? undefined : path
}
