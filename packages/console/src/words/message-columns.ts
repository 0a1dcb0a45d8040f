import type { MessageRow } from '../data/messages.ts'

/** Columns of the list of messages that the user can choose. The key is always shown. */
export const MESSAGE_COLUMNS = {
  status: 'Status',
  what: 'What failed',
  source: 'Source',
  type: 'Type',
  handler: 'Handler',
  code: 'Code',
  lane: 'Lane',
  messageId: 'Message id',
  attempts: 'Attempts',
  cycle: 'Cycle',
  size: 'Size',
  first: 'First failed',
  failed: 'Failed',
} as const
export type MessageColumn = keyof typeof MESSAGE_COLUMNS
/** A column, or a header of the messages: `header:x-tenant`. */
export type ColumnName = MessageColumn | `header:${string}`

const DEFAULT_COLUMNS: readonly ColumnName[] = [
  'status',
  'what',
  'type',
  'attempts',
  'size',
  'failed',
]

/** 12 columns: more do not fit on a page. */
const COLUMNS_MAX = 12
const ORDER = Object.keys(MESSAGE_COLUMNS)

const isColumn = (name: string): name is ColumnName =>
  name in MESSAGE_COLUMNS || (name.startsWith('header:') && name.length > 'header:'.length)

/** Reads the columns of an address: `status,what,header:x-tenant`. Unknown names are left out. */
export function parseColumns(text: string | undefined): readonly ColumnName[] {
  const names = (text ?? '').split(',').filter(isColumn).slice(0, COLUMNS_MAX)
  return names.length === 0 ? DEFAULT_COLUMNS : [...new Set(names)]
}

/** Returns the columns for an address after one was switched on or off. The default columns need no text. */
export function toggledColumns(columns: readonly ColumnName[], name: ColumnName): string {
  const next = columns.includes(name)
    ? columns.filter((one) => one !== name)
    : [...columns, name].toSorted((one, other) => placeOf(one) - placeOf(other))
  return next.join() === DEFAULT_COLUMNS.join() ? '' : next.join()
}

/** Headers are before the numbers. */
const placeOf = (name: ColumnName) =>
  name in MESSAGE_COLUMNS ? ORDER.indexOf(name) : ORDER.indexOf('attempts') - 0.5

export const columnTitle = (name: ColumnName): string =>
  MESSAGE_COLUMNS[name as MessageColumn] ?? name.slice('header:'.length)

/** 40 headers: a longer menu is not readable. */
const HEADERS_MAX = 40

/** Returns the names of headers in the rows, so that they can be chosen as columns. */
export const headerColumns = (rows: readonly MessageRow[]): readonly ColumnName[] =>
  [...new Set(rows.flatMap(({ headers }) => Object.keys(headers)))]
    .filter((name) => !name.includes(',') && name.length <= 80)
    .toSorted()
    .slice(0, HEADERS_MAX)
    .map((name): ColumnName => `header:${name}`)
