import type { Client } from '@redrive/api'
import {
  type DeadLetterFilter,
  FILTER_FIELDS,
  FilterError,
  filterWords,
  formatFilterWord,
  parseFilter,
} from '@redrive/api/filter'
import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'
import { resolveId, resolveUniqueId } from './resolve-id.ts'

/** A filter as the server reads it. */
export interface Filter {
  readonly text: string
  readonly fields: DeadLetterFilter
}

/**
 * Reads the words after a command as a filter and replaces prefixes of group ids by full ids. `isUnique`: for a command that
 * changes something, a prefix must match only one group.
 */
export async function readFilter(
  io: Io,
  client: Client,
  given: readonly string[],
  { isUnique }: { readonly isUnique: boolean },
): Promise<Filter> {
  const words = given.map(wordOf)
  // Before the first request: an invalid word must not cost one.
  for (const word of words) if (groupIn(word) === undefined) parsed(io, word)
  const resolve = isUnique ? resolveUniqueId : resolveId
  const resolved = await Promise.all(
    words.map(async (word) => {
      const group = groupIn(word)
      return group === undefined ? word : `group:${await resolve(io, client, 'group', group)}`
    }),
  )
  const text = resolved.join(' ')
  return { text, fields: parsed(io, text) }
}

function parsed(io: Io, text: string): DeadLetterFilter {
  return orUsage(() => parseFilter(text, io.now()))
}

function groupIn(word: string): string | undefined {
  const [only] = orUsage(() => filterWords(word))
  return only?.field === 'group' ? only.value : undefined
}

function orUsage<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof FilterError)) throw error
    throw new CommandError(EXIT.usage, error.message, { cause: error })
  }
}

const isField = (name: string | undefined) => FILTER_FIELDS.some((field) => field.name === name)

/**
 * Returns an argument as one word of the filter. The shell has removed its quotes, so an argument with spaces is one
 * value: `header:x-tenant=acme corp`.
 */
function wordOf(argument: string): string {
  if (!/\s/.test(argument)) return argument
  if (isOneWord(argument)) return argument
  const [, name, value = ''] = /^([a-z-]+):(.*)$/s.exec(argument) ?? []
  refuseSeveral(argument)
  return isField(name) ? formatFilterWord(name, value) : formatFilterWord(undefined, argument)
}

/** Whether the argument still has its quotes, as in `'key:"a b"'`. */
function isOneWord(argument: string): boolean {
  try {
    return filterWords(argument).length === 1
  } catch (error) {
    if (error instanceof FilterError) return false
    throw error
  }
}

/** Rejects a filter in one argument: as one value it would match nothing, and the reason would not be visible. */
function refuseSeveral(argument: string): void {
  const words = argument.split(/\s+/).slice(1)
  const isSeveral = words.some((word) => /^[a-z-]+:./.test(word) && isField(word.split(':', 1)[0]))
  if (!isSeveral) return
  throw new CommandError(
    EXIT.usage,
    `Expected one word of the filter in each argument, got "${argument}". Remove the quotes around the filter: redrive messages list source:orders after:2h`,
  )
}

/** Returns a copy without undefined properties. */
export const defined = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
