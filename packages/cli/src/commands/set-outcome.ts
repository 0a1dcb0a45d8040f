import type { Client, Input } from '@redrive/api'
import { isBoundedFilter } from '@redrive/api/filter'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print } from '../print.ts'
import { connect } from '../server/connect.ts'
import { readFilter } from '../server/filter.ts'
import { mutate } from '../server/mutate.ts'
import { certainIds, resolveUniqueId } from '../server/resolve-id.ts'
import { counted, number } from '../text/format.ts'
import { batchExit } from './discard.ts'

export interface SetOutcomeOptions extends CommonOptions {
  readonly as: 'resolved' | 'open'
  readonly id?: readonly string[]
  /** Selects the messages of a run without a known outcome. */
  readonly run?: string
}

/** States of items without a known outcome. */
const UNDECIDED = ['unknown', 'not_returned'] as const
const MORE = ' More messages match. Narrow the filter, and run the command again.'
/** 200: the largest page that the API allows. */
const PAGE_SIZE = 200
/** 1,000: the largest number of ids in one request. */
const IDS_MAX = 1_000
/** Bounds a filter without a time. Messages without a known outcome are rare, so their age does not matter. */
const ANY_AGE = 'after:3650d'

/** Sets the outcome of replays without a known one: by id, of a run, or by a filter. */
export async function setOutcome(
  io: Io,
  words: readonly string[],
  options: SetOutcomeOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  let changed = 0
  let skippedCount = 0
  let hasMore = false
  const skipped: string[] = []
  for await (const body of requestsOf(io, client, words, options)) {
    const result = await mutate(io, client, options, 'setOutcomes', { body })
    if (result === undefined) return EXIT.ok
    changed += result.output.changed
    skipped.push(...result.output.skipped)
    skippedCount += result.output.skippedCount ?? result.output.skipped.length
    hasMore = result.output.hasMore === true
    // Without a change, the same request would return the same again.
    if ('filter' in body && !(hasMore && result.output.changed > 0)) break
  }
  print(io, options, {
    json: { changed, skipped, skippedCount, hasMore },
    human: (page) => {
      page.line`${counted(changed, 'message')} now ${options.as}, ${number(skippedCount)} skipped.${hasMore ? MORE : ''}`
    },
  })
  return batchExit(changed, skippedCount)
}

/** Yields the requests. The one of a filter is repeated as long as more messages match. */
async function* requestsOf(
  io: Io,
  client: Client,
  words: readonly string[],
  options: SetOutcomeOptions,
): AsyncGenerator<Input<'setOutcomes'>['body'], void, undefined> {
  const { id = [], run, as } = options
  const ways = [id.length > 0, run !== undefined, words.length > 0].filter(Boolean)
  if (ways.length !== 1) {
    throw new CommandError(
      EXIT.usage,
      'Expected one of: a filter such as group:7f3a, --run with the id of a run, or --id with ids of messages.',
    )
  }
  if (words.length > 0) {
    const { text, fields } = await readFilter(io, client, words, { isUnique: true })
    const filter = isBoundedFilter(fields) ? text : `${text} ${ANY_AGE}`
    for (;;) yield { filter, as }
  }
  const ids =
    run === undefined
      ? await certainIds(io, client, 'message', id)
      : await idsOfRun(io, client, await resolveUniqueId(io, client, 'run', run))
  for (let from = 0; from < ids.length; from += IDS_MAX) {
    yield { ids: ids.slice(from, from + IDS_MAX), as }
  }
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
