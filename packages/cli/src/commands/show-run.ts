import type { Output, Client, Input, Run } from '@redrive/api'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { isForPeople, print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { resolveId } from '../server/resolve-id.ts'
import type { Page } from '../text/page.ts'
import { number } from '../text/format.ts'
import { type ItemState, runFacts, sum } from './run-text.ts'

export interface ShowRunOptions extends CommonOptions {
  /** States of the items to list. */
  readonly items?: readonly string[]
  /** Default: 50 for people, all with `--json` and `--jsonl`. */
  readonly limit?: number
}

type Item = Output<'listReplayItems'>['items'][number]
type ItemStates = NonNullable<NonNullable<Input<'listReplayItems'>['query']>['states']>

/** 50 items fit on one or two screens. */
const SCREEN = 50
/** 200: the largest page that the API allows. */
const PAGE = 200

export async function showRun(io: Io, given: string, options: ShowRunOptions): Promise<ExitCode> {
  const client = connect(io, options)
  const id = await resolveId(io, client, 'run', given)
  const run = await client.call('getReplay', { params: { id } }, { signal: io.signal })
  const items = await itemsOf(io, client, id, options)
  print(io, options, {
    json: items === undefined ? run : { ...run, items },
    ...(items === undefined ? {} : { lines: items }),
    human: (page) => {
      runFacts(io, page, run)
      if (items !== undefined && items.length > 0) itemTable(page, items)
    },
  })
  if (items !== undefined) hintMore(io, run, options, items.length)
  return EXIT.ok
}

/** Reads the items page by page. Returns undefined if `--items` is not set. */
async function itemsOf(
  io: Io,
  client: Client,
  id: string,
  options: ShowRunOptions,
): Promise<readonly Item[] | undefined> {
  if (options.items === undefined) return undefined
  const { limit = isForPeople(options) ? SCREEN : Number.POSITIVE_INFINITY } = options
  const states = options.items as ItemStates
  const items: Item[] = []
  while (items.length < limit) {
    const size = Math.min(PAGE, limit - items.length)
    const after = items.at(-1)?.position
    const query = { states, limit: size, ...(after === undefined ? {} : { after }) }
    const input = { params: { id }, query }
    const page = await client.call('listReplayItems', input, { signal: io.signal })
    items.push(...page.items)
    if (page.items.length < size) break
  }
  return items
}

/** Prints how many items are not shown and how to list them. */
function hintMore(
  io: Io,
  { id, counts }: Run,
  { items = [] }: ShowRunOptions,
  shown: number,
): void {
  const total = sum(counts, items as readonly ItemState[])
  if (total <= shown) return
  say(
    io,
  )`${number(total - shown)} more. List all: redrive replay show ${id} --items ${items.join(' ')} --limit ${total}`
}

function itemTable(page: Page, items: readonly Item[]): void {
  page.line``
  page.table<Item>(
    [
      { title: '#', of: ({ position }) => number(position), isNumber: true },
      { title: 'MESSAGE', of: ({ deadLetter }) => deadLetter },
      { title: 'STATE', of: ({ state }) => state },
      { title: 'SENT', of: ({ publishCount }) => number(publishCount), isNumber: true },
      {
        title: 'WHY',
        of: ({ reason, otherRun, confirmedBy }) => reason ?? otherRun ?? confirmedBy ?? '',
        least: 8,
      },
    ],
    items,
  )
}
