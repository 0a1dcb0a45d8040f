import type { Client, Group, Input } from '@redrive/api'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { hint, isForPeople, print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { defined } from '../server/filter.ts'
import { futureOf } from '../server/time.ts'
import { resolveUniqueId, shortIds, resolveId } from '../server/resolve-id.ts'
import { mutate } from '../server/mutate.ts'
import { type Window, sparksOf } from '../server/trend.ts'
import type { Page } from '../text/page.ts'
import { bold, dim, type Printable, yellow } from '../text/painted.ts'
import { age, counted, isoTime, number, relative } from '../text/format.ts'
import { messageTable } from './message-table.ts'

export interface ListGroupsOptions extends CommonOptions {
  readonly source?: readonly string[]
  readonly handler?: string
  readonly state?: readonly string[]
  readonly class?: string
  readonly regressed?: boolean
  readonly owner?: string
  readonly open?: boolean
  readonly text?: string
  readonly order?: string
  readonly limit: number
  readonly cursor?: string
  readonly trend: Window | 'none'
}

export async function listGroups(io: Io, options: ListGroupsOptions): Promise<ExitCode> {
  const client = connect(io, options)
  const answer = await client.call(
    'listGroups',
    { query: groupQueryOf(options) },
    { signal: io.signal },
  )
  const { groups } = answer
  const isDrawn = isForPeople(options) && options.trend !== 'none'
  const sparks = isDrawn ? await sparksOf(io, client, groups, options.trend as Window) : undefined
  print(io, options, {
    json: answer,
    lines: groups,
    human: (page) => {
      if (groups.length === 0) page.line`${noneOf(options)}`
      else groupTable(io, page, groups, sparks)
    },
  })
  if (answer.nextCursor !== undefined)
    say(io)`More results: add --limit 200, or --cursor ${answer.nextCursor}`
  const [first] = groups
  if (first !== undefined) {
    const short = shortIds(groups.map(({ id }) => id))(first.id)
    hint(io, options)`Show a group and how to replay it: redrive groups show ${short}`
  }
  return EXIT.ok
}

/** Returns the text for an empty list. `--open` is not counted as a filter: it hides no open dead letters. */
function noneOf(options: ListGroupsOptions): string {
  const { source, handler, state, regressed, owner, text } = options
  const filters = [source, handler, state, options.class, regressed, owner, text]
  return filters.some((one) => one !== undefined)
    ? 'No group matches the filter.'
    : 'No failure groups. There is nothing to do.'
}

function groupQueryOf(options: ListGroupsOptions): NonNullable<Input<'listGroups'>['query']> {
  const { source, handler, state, regressed, owner, open, text, order, limit, cursor } = options
  return defined({
    sources: source,
    handler,
    states: state,
    class: options.class,
    regressed,
    owner,
    hasOpen: open,
    text,
    order,
    limit,
    cursor,
  }) as NonNullable<Input<'listGroups'>['query']>
}

export function groupTable(
  io: Io,
  page: Page,
  groups: readonly Group[],
  sparks: ReadonlyMap<string, string> | undefined,
): void {
  const short = shortIds(groups.map(({ id }) => id))
  const now = io.now()
  page.table<Group>(
    [
      { title: 'GROUP', of: ({ id }) => bold(short(id)) },
      { title: 'CLASS', of: (group) => group.class },
      { title: 'OPEN', of: ({ openCount }) => number(openCount), isNumber: true },
      ...unsettled(groups),
      { title: 'COUNT', of: ({ count }) => number(count), isNumber: true },
      { title: 'SINCE', of: ({ firstSeenAt }) => age(now - firstSeenAt), isNumber: true },
      { title: 'LAST', of: ({ lastSeenAt }) => age(now - lastSeenAt), isNumber: true },
      ...(sparks === undefined
        ? []
        : [{ title: 'TREND', of: ({ id }: Group) => sparks.get(id) ?? '' }]),
      { title: 'SOURCE', of: ({ source }) => source, least: 8 },
      { title: 'WHAT FAILED', of: whatFailed, least: 20 },
    ],
    groups,
  )
}

/** Returns the columns of messages that are neither open nor settled. Without any, they are left out. */
function unsettled(groups: readonly Group[]) {
  const columns = [
    { title: 'REPLAYING', count: ({ replayingCount }: Group) => replayingCount },
    { title: 'UNDECIDED', count: ({ undecidedCount }: Group) => undecidedCount },
  ]
  return columns
    .filter(({ count }) => groups.some((one) => count(one) > 0))
    .map(({ title, count }) => ({
      title,
      of: (one: Group) => number(count(one)),
      isNumber: true as const,
    }))
}

function whatFailed({ title, code, state, regressed }: Group): Printable {
  const text = code === undefined || title.includes(code) ? title : `${code} ${title}`
  if (regressed) return yellow(`regressed: ${text}`)
  return state === 'open' ? text : dim(`${state}: ${text}`)
}

export async function showGroup(io: Io, given: string, options: CommonOptions): Promise<ExitCode> {
  const client = connect(io, options)
  const id = await resolveId(io, client, 'group', given)
  const [group, why, { comments }, newest] = await Promise.all([
    client.call('getGroup', { params: { id } }, { signal: io.signal }),
    client.call('explainGroup', { params: { id } }, { signal: io.signal }),
    client.call('listGroupComments', { params: { id } }, { signal: io.signal }),
    newestOf(io, client, id),
  ])
  const merged = group.mergedCount === 0 ? [] : await mergedOf(io, client, id)
  print(io, options, {
    json: { group, why, comments, newest, merged },
    human: (page) => {
      groupFacts(io, page, group)
      page.line``
      page.line`${bold('Why these are one group')} ${dim(`(${originOf(group)}, ${why.signature})`)}`
      page.facts(Object.entries(why.shared).map(([name, value]) => [`  ${name}`, value]))
      if (why.unknown.length > 0)
        page.line`  Unknown for the first message: ${why.unknown.join(', ')}`
      mergedTable(io, page, merged)
      for (const { author, text, writtenAt } of comments) {
        page.line``
        page.line`${bold(author)} ${dim(relative(io.now(), writtenAt))}`
        page.block(text)
      }
      page.line``
      messageTable(io, page, newest)
      if (group.openCount > 0) page.line`\nReplay them: redrive replay plan group:${group.id}`
      if (group.undecidedCount > 0)
        page.line`\nSet the outcome of the undecided ones: redrive set-outcome --as resolved|open group:${group.id}`
    },
  })
  return EXIT.ok
}

const originOf = ({ signatureFrom, algorithm }: Group) =>
  signatureFrom === 'consumer' ? 'signature given by the consumer' : `rules version ${algorithm}`

const mergedOf = async (io: Io, client: Client, id: string) =>
  (await client.call('listMergedGroups', { params: { id } }, { signal: io.signal })).groups

/** Prints the merged groups with full ids, because `unmerge` needs them. */
function mergedTable(io: Io, page: Page, groups: readonly Group[]): void {
  if (groups.length === 0) return
  page.line``
  page.line`${bold('Merged into it by hand')}`
  page.table<Group>(
    [
      { title: 'GROUP', of: ({ id }) => id },
      { title: 'OPEN', of: ({ openCount }) => number(openCount), isNumber: true },
      { title: 'BY', of: ({ mergedInto }) => mergedInto?.by ?? '' },
      { title: 'WHEN', of: ({ mergedInto }) => relative(io.now(), mergedInto?.at ?? 0) },
      { title: 'REASON', of: ({ mergedInto }) => mergedInto?.reason ?? '', least: 10 },
      { title: 'WHAT FAILED', of: whatFailed, least: 20 },
    ],
    groups,
  )
}

/** 5 examples are enough to recognise the failure. */
const NEWEST = 5

async function newestOf(io: Io, client: Client, id: string) {
  const query = { filter: `group:${id}`, limit: NEWEST }
  return (await client.call('listDeadLetters', { query }, { signal: io.signal })).deadLetters
}

function groupFacts(io: Io, page: Page, group: Group): void {
  const { firstSeenAt, lastSeenAt, count, openCount, attempts, mutedUntil } = group
  const counts = [
    counted(count, 'message'),
    `${number(openCount)} open`,
    ...(group.replayingCount > 0 ? [`${number(group.replayingCount)} replaying`] : []),
    ...(group.undecidedCount > 0 ? [`${number(group.undecidedCount)} undecided`] : []),
    counted(attempts, 'attempt'),
  ]
  page.line`${bold(group.title)}`
  page.facts([
    ['Group', group.id],
    ['Source', group.source],
    ['Handler', group.handler],
    ['Class', group.class],
    ['Error type', group.errorType],
    ['Code', group.code],
    ['Frame', group.frame],
    ['State', group.regressed ? `${group.state}, regressed` : group.state],
    ['Muted until', mutedUntil === undefined ? undefined : isoTime(mutedUntil)],
    ['Owner', group.owner],
    ['Count', counts.join(', ')],
    ['Seen', `${relative(io.now(), firstSeenAt)} to ${relative(io.now(), lastSeenAt)}`],
    ['First error', group.sample],
    ['Merged into', group.mergedInto === undefined ? undefined : mergeText(io, group.mergedInto)],
    ['Continues', group.continues?.join(', ') || undefined],
    ['Continued in', group.continuedIn],
  ])
}

const mergeText = (io: Io, { group, by, at, reason }: NonNullable<Group['mergedInto']>) =>
  `${group}, by ${by} ${relative(io.now(), at)}: ${reason}`

export interface ChangeGroupOptions extends CommonOptions {
  readonly state?: string
  /** With the state `muted`: a future time, or how long from now. */
  readonly until?: string
  /** False: removes the owner. */
  readonly owner?: string | false
}

/** Changes a group. The request contains the version that was read, so no concurrent change is lost. */
export async function changeGroup(
  io: Io,
  given: string,
  options: ChangeGroupOptions,
): Promise<ExitCode> {
  const { state, until, owner } = options
  if ([state, until, owner].every((one) => one === undefined)) {
    throw new CommandError(
      EXIT.usage,
      'Nothing to change. Add --state, --until, --owner or --no-owner.',
    )
  }
  const client = connect(io, options)
  const id = await resolveUniqueId(io, client, 'group', given)
  const { etag } = await client.ask('getGroup', { params: { id } }, { signal: io.signal })
  const body = defined({
    state,
    mutedUntil: until === undefined ? undefined : futureOf(io, '--until', until),
    owner: owner === false ? null : owner,
  })
  const changed = await mutate(io, client, options, 'changeGroup', {
    params: { id },
    body,
    ifMatch: etag ?? '*',
  })
  if (changed !== undefined) {
    print(io, options, {
      json: changed.output,
      human: (page) => groupFacts(io, page, changed.output),
    })
  }
  return EXIT.ok
}

export async function commentGroup(
  io: Io,
  given: string,
  text: string,
  options: CommonOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const id = await resolveUniqueId(io, client, 'group', given)
  const input = { params: { id }, body: { text } }
  const added = await mutate(io, client, options, 'commentGroup', input)
  // The response of the server is empty, so only the id can be printed.
  if (added !== undefined) {
    print(io, options, {
      json: { commented: id },
      human: (page) => page.line`Added a comment to group ${id}.`,
    })
  }
  return EXIT.ok
}
