import type { Client } from '@redrive/api'
import { isBoundedFilter } from '@redrive/api/filter'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print } from '../print.ts'
import { connect } from '../server/connect.ts'
import { readFilter } from '../server/filter.ts'
import { mutate } from '../server/mutate.ts'
import { certainIds, resolveUniqueId } from '../server/resolve-id.ts'
import { counted } from '../text/format.ts'
import { batchExit } from './discard.ts'

export interface SetOutcomeOptions extends CommonOptions {
  readonly as: 'resolved' | 'open'
  readonly id?: readonly string[]
  /** Selects the messages of a run without a known outcome. */
  readonly run?: string
}

/** States and statuses without a known outcome. */
const UNDECIDED = ['unknown', 'not_returned'] as const
/** 200: the largest page that the API allows. */
const PAGE_SIZE = 200
/** 1,000: the largest number of ids in one request. */
const IDS_MAX = 1_000
/** Bounds a filter without a time. These statuses are rare and have an index, so their age does not matter. */
const ANY_AGE = 'after:3650d'

/** Sets the outcome of replays without a known one: by id, of a run, or by a filter. */
export async function setOutcome(
  io: Io,
  words: readonly string[],
  options: SetOutcomeOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const ids = await undecidedIds(io, client, words, options)
  let changed = 0
  const skipped: string[] = []
  for (let from = 0; from < ids.length; from += IDS_MAX) {
    const body = { ids: ids.slice(from, from + IDS_MAX), as: options.as }
    const result = await mutate(io, client, options, 'setOutcomes', { body })
    if (result === undefined) return EXIT.ok
    changed += result.output.changed
    skipped.push(...result.output.skipped)
  }
  print(io, options, {
    json: { changed, skipped },
    human: (page) =>
      page.line`${counted(changed, 'message')} now ${options.as}, ${skipped.length} skipped.`,
  })
  return batchExit(changed, skipped.length)
}

async function undecidedIds(
  io: Io,
  client: Client,
  words: readonly string[],
  { id = [], run }: SetOutcomeOptions,
): Promise<readonly string[]> {
  const ways = [id.length > 0, run !== undefined, words.length > 0].filter(Boolean)
  if (ways.length !== 1) {
    throw new CommandError(
      EXIT.usage,
      'Expected one of: a filter such as group:7f3a, --run with the id of a run, or --id with ids of messages.',
    )
  }
  if (id.length > 0) return certainIds(io, client, 'message', id)
  if (run !== undefined) return idsOfRun(io, client, await resolveUniqueId(io, client, 'run', run))
  const { text, fields } = await readFilter(io, client, words, { isUnique: true })
  const statuses = fields.statuses === undefined ? UNDECIDED.map((one) => `status:${one}`) : []
  const bound = isBoundedFilter(fields) ? [] : [ANY_AGE]
  return idsMatching(io, client, [text, ...statuses, ...bound].join(' '))
}

async function idsOfRun(io: Io, client: Client, id: string): Promise<readonly string[]> {
  const ids: string[] = []
  for (let after = -1; ; ) {
    const query = { states: [...UNDECIDED], limit: PAGE_SIZE, after }
    const input = { params: { id }, query }
    const { items } = await client.call('listReplayItems', input, { signal: io.signal })
    ids.push(...items.map(({ deadLetter }) => deadLetter))
    after = items.at(-1)?.position ?? -1
    if (items.length < PAGE_SIZE) return ids
  }
}

async function idsMatching(io: Io, client: Client, filter: string): Promise<readonly string[]> {
  const ids: string[] = []
  for (let cursor: string | undefined; ; ) {
    const query = { filter, limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) }
    const page = await client.call('listDeadLetters', { query }, { signal: io.signal })
    ids.push(...page.deadLetters.map(({ id }) => id))
    cursor = page.nextCursor
    if (cursor === undefined) return ids
  }
}
