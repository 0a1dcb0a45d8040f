import { FAILURE_CLASSES, GROUP_STATES } from '@redrive/api/enums'
import { FilterError, filterWords } from '@redrive/api/filter'
import type { Input } from '@redrive/api'

type GroupQuery = NonNullable<Input<'listGroups'>['query']>

/** The views of the list of groups. Without one, it is `open`. */
export const GROUP_VIEWS = [
  'decision',
  'open',
  'mine',
  'regressed',
  'muted',
  'resolved',
  'all',
] as const
export type GroupView = (typeof GROUP_VIEWS)[number]

/** The tabs of a group. The first one is the default. */
export const GROUP_TABS = ['messages', 'why', 'replays'] as const
export type GroupTab = (typeof GROUP_TABS)[number]

/** Returns what a view selects. */
export function viewQuery(view: GroupView, person: string): GroupQuery {
  const views: Readonly<Record<GroupView, GroupQuery>> = {
    open: { states: ['open'], hasOpen: true },
    decision: { states: ['open'], hasOpen: true },
    mine: { owner: person },
    regressed: { regressed: true },
    muted: { states: ['muted'] },
    resolved: { states: ['resolved'] },
    all: {},
  }
  return views[view]
}

export interface GroupFilterKey {
  readonly name: string
  readonly description: string
  readonly values: readonly string[]
  readonly read: (value: string) => GroupQuery | undefined
}

const oneOf = <T extends string>(values: readonly T[], value: string) =>
  values.find((one) => one === value)

// biome-ignore format: one row per key
export const GROUP_FILTER_KEYS: readonly GroupFilterKey[] = [
  { name: 'source', description: 'Name of the source', values: [], read: (value) => ({ sources: [value] }) },
  { name: 'class', description: 'Failure class', values: FAILURE_CLASSES, read: (value) => { const found = oneOf(FAILURE_CLASSES, value); return found && { class: found } } },
  { name: 'handler', description: 'Handler that failed', values: [], read: (value) => ({ handler: value }) },
  { name: 'owner', description: 'Owner of the group', values: [], read: (value) => ({ owner: value }) },
  { name: 'state', description: 'State of the group', values: GROUP_STATES, read: (value) => { const found = oneOf(GROUP_STATES, value); return found && { states: [found] } } },
  { name: 'has', description: 'has:open: groups with open messages', values: ['open'], read: (value) => (value === 'open' ? { hasOpen: true } : undefined) },
  { name: 'regressed', description: 'Failed again after it was resolved', values: ['yes', 'no'], read: (value) => (value === 'yes' || value === 'no' ? { regressed: value === 'yes' } : undefined) },
  { name: 'text', description: 'Part of the title', values: [], read: (value) => ({ text: value }) },
]

export type ParsedGroupFilter = { readonly query: GroupQuery } | { readonly problem: string }

/** Reads the words of a filter for groups. Free text is a part of the title. */
export function parseGroupFilter(filter: string): ParsedGroupFilter {
  try {
    return filterWords(filter).reduce<ParsedGroupFilter>(
      (parsed, { field = 'text', value }) =>
        'problem' in parsed ? parsed : added(parsed.query, field, value),
      { query: {} },
    )
  } catch (error) {
    if (error instanceof FilterError) return { problem: error.message }
    throw error
  }
}

function added(query: GroupQuery, field: string, value: string): ParsedGroupFilter {
  const key = GROUP_FILTER_KEYS.find(({ name }) => name === field)
  const names = GROUP_FILTER_KEYS.map(({ name }) => name).join(', ')
  if (key === undefined) return { problem: `Unknown field "${field}". Fields: ${names}.` }
  const read = value === '' ? undefined : key.read(value)
  if (read === undefined) {
    const expected = key.values.length > 0 ? `one of ${key.values.join(', ')}` : 'a value'
    return {
      problem: `"${field}" expects ${expected}, as in ${field}:${key.values[0] ?? 'orders'}.`,
    }
  }
  if (field === 'source') {
    return { query: { ...query, sources: [...(query.sources ?? []), value] } }
  }
  if (field === 'text' && query.text !== undefined) {
    return { query: { ...query, text: `${query.text} ${value}` } }
  }
  return { query: { ...query, ...read } }
}
