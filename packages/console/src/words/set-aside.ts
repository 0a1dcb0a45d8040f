import type { Output } from '@redrive/api'
import { SET_ASIDE_STATUSES } from '@redrive/api/enums'
import { FilterError, filterWords } from '@redrive/api/filter'

type Message = Output<'getSetAside'>
type Status = Message['status']

export const REASON_NAMES: Readonly<Record<Message['reason'], string>> = {
  body_too_large: 'Body is too large',
  headers_not_publishable: 'Headers cannot be published',
  headers_not_storable: 'Headers cannot be stored',
  unreadable: 'Headers cannot be read',
  rejected_by_database: 'Rejected by the database',
}

export interface SetAsideFilter {
  readonly sources?: string[]
  readonly statuses?: Status[]
}

export const SET_ASIDE_KEYS = [
  { name: 'source', description: 'Name of the source' },
  { name: 'status', description: 'Status; without it: open, requested, replaying' },
] as const

export type ParsedSetAside = { readonly query: SetAsideFilter } | { readonly problem: string }

/** Reads the words of a filter for set-aside messages. */
export function parseSetAside(filter: string): ParsedSetAside {
  try {
    return filterWords(filter).reduce<ParsedSetAside>(
      (parsed, { field, value }) => ('problem' in parsed ? parsed : added(parsed, field, value)),
      { query: {} },
    )
  } catch (error) {
    if (error instanceof FilterError) return { problem: error.message }
    throw error
  }
}

function added(
  { query }: { readonly query: SetAsideFilter },
  field: string | undefined,
  value: string,
): ParsedSetAside {
  if (field === 'source' && value !== '')
    return { query: { ...query, sources: [...(query.sources ?? []), value] } }
  const status = SET_ASIDE_STATUSES.find((one) => one === value)
  if (field === 'status' && status !== undefined)
    return { query: { ...query, statuses: [...(query.statuses ?? []), status] } }
  if (field === 'status')
    return { problem: `"status" expects one of ${SET_ASIDE_STATUSES.join(', ')}.` }
  return {
    problem: `The filter accepts the fields source and status, such as source:orders status:discarded.`,
  }
}
