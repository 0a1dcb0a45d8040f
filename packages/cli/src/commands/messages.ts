import type { Client, DeadLetter, DeadLetterDetail } from '@redrive/api'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { reasonOf } from '../failure.ts'
import type { CommonOptions, Io } from '../io.ts'
import { hint, print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { defined, type FilterOptions, type Query, queryOf } from '../server/filter.ts'
import { shortIds, wholeId } from '../server/ids.ts'
import type { Page } from '../text/page.ts'
import { bold, dim } from '../text/painted.ts'
import { safeJson } from '../text/safe.ts'
import { bytes, moment, number, relative } from '../text/words.ts'
import { messageTable } from './message-table.ts'

export interface ListMessagesOptions extends CommonOptions, FilterOptions {
  readonly status?: readonly string[]
  readonly limit: number
  readonly next?: string
}

export async function listMessages(io: Io, options: ListMessagesOptions): Promise<ExitCode> {
  const client = connect(io, options)
  const { status, limit, next: from } = options
  const filter = bounded(io, queryOf(io, options, await groupsOf(io, client, options)))
  const query = { ...filter, ...defined({ statuses: status, most: limit, next: from }) }
  const answer = await client.call('listDeadLetters', { query }, { signal: io.signal })
  print(io, options, {
    json: answer,
    lines: answer.deadLetters,
    human: (page) => {
      if (answer.deadLetters.length === 0) page.line`No dead letter fits.`
      else messageTable(io, page, answer.deadLetters)
    },
  })
  if (answer.next !== undefined) say(io)`There are more: add --limit 200, or --next ${answer.next}`
  const [first] = answer.deadLetters
  if (first !== undefined) {
    const short = shortIds(answer.deadLetters.map(({ id }) => id))(first.id)
    hint(io, options)`One in full: redrive messages show ${short}`
  }
  return EXIT.ok
}

/** A day: what someone who says nothing most likely means. */
const LOOK_BACK_MS = 86_400_000

/** The server does not search all there ever was; what is left out is said. */
function bounded(io: Io, query: Query): Query {
  const { groups, key, extracted, after } = query
  if ([groups, key, extracted, after].some((one) => one !== undefined)) return query
  say(io)`Those of the last 24 h. For older ones add --after, such as --after 7d, or --group.`
  return { ...query, after: io.now() - LOOK_BACK_MS }
}

function groupsOf(io: Io, client: Client, { group = [] }: FilterOptions): Promise<string[]> {
  return Promise.all(group.map((one) => wholeId(io, client, 'group', one)))
}

export interface ExportOptions extends CommonOptions, FilterOptions {
  readonly status?: readonly string[]
}

/** All that fit, one JSON document in each line, as they come. */
export async function exportMessages(io: Io, options: ExportOptions): Promise<ExitCode> {
  const client = connect(io, options)
  const filter = bounded(io, queryOf(io, options, await groupsOf(io, client, options)))
  const query = { ...filter, ...defined({ statuses: options.status }) }
  let count = 0
  let last: DeadLetter | undefined
  try {
    for await (const one of client.stream('exportDeadLetters', { query }, { signal: io.signal })) {
      io.stdout.write(`${safeJson(one)}\n`)
      count += 1
      last = one
    }
  } catch (error) {
    if (last === undefined || io.signal.aborted) throw error
    throw brokeOff(error, count, last, query)
  }
  return EXIT.ok
}

/**
 * The server breaks off an export that gets too long, and cannot say why in the middle of it. `--before` is
 * without its moment, so it is one later than the last: others may have failed at the same. `--after` is a
 * moment, too: what is so long ago is something else by then.
 */
function brokeOff(
  cause: unknown,
  count: number,
  { lastFailedAt }: DeadLetter,
  { after }: Query,
): CommandError {
  const from = after === undefined ? '' : `--after ${moment(after)} `
  return new CommandError(
    EXIT.failure,
    [
      `Broke off after ${number(count)}; the output is not whole: ${reasonOf(cause)}.`,
      'An export has at most 100,000, and a server that restarts breaks it off.',
      `Go on with the same filters and ${from}--before ${moment(lastFailedAt + 1)}`,
      'Those that failed in the same millisecond as the last one come again.',
    ].join('\n'),
    { cause },
  )
}

export interface ShowMessageOptions extends CommonOptions {
  /** The body as it came, which is written down by the server. */
  readonly unmasked?: boolean
}

export async function showMessage(
  io: Io,
  given: string,
  options: ShowMessageOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const id = await wholeId(io, client, 'message', given)
  const [message, { items }, payload] = await Promise.all([
    client.call('getDeadLetter', { params: { id } }, { signal: io.signal }),
    client.call('listDeadLetterReplays', { params: { id } }, { signal: io.signal }),
    options.unmasked
      ? client.call('getPayload', { params: { id } }, { signal: io.signal })
      : undefined,
  ])
  print(io, options, {
    json: { ...message, replays: items, ...(payload === undefined ? {} : { payload }) },
    human: (page) => {
      messageFacts(io, page, message)
      attemptsOf(io, page, message)
      const headers = payload?.headers ?? message.headers
      if (Object.keys(headers).length > 0) {
        page.line`\n${bold('Headers')}${dim(payload === undefined ? ' (masked)' : '')}`
        page.facts(
          Object.entries(headers).map(([name, value]) => [`  ${name}`, shownHeader(value)]),
        )
      }
      if (payload === undefined) previewOf(page, message)
      else {
        page.line`\n${bold('Body')} ${dim(bytes(message.payloadBytes))}`
        page.block(payload.text ?? payload.bytes)
      }
      for (const { run, state, reason, cycle } of items) {
        page.line`\nReplay ${run}, cycle ${cycle}: ${state}${reason === undefined ? '' : ` (${reason})`}`
      }
    },
  })
  if (message.status === 'open') {
    hint(io, options)`\nAll that are alike: redrive groups show ${message.group}`
    hint(io, options)`This one alone: redrive replay plan --id ${id}`
  }
  return EXIT.ok
}

const shownHeader = (value: unknown): string =>
  typeof value === 'string' ? value : safeJson(value)

function messageFacts(io: Io, page: Page, message: DeadLetterDetail): void {
  const now = io.now()
  const { settledAt, settledBy, lane, quarantined } = message
  page.line`${bold(message.message)}`
  page.facts([
    ['Message', message.id],
    ['Group', message.group],
    ['Source', message.source],
    ['Came from', message.origin === message.source ? undefined : message.origin],
    ['Handler', message.handler],
    ['Status', quarantined ? `${message.status}, quarantined` : message.status],
    ['Class', message.class],
    ['Code', message.code],
    ['Reason', message.reason],
    ['Type', message.type],
    ['Message id', message.messageId],
    ['Key', message.key],
    ['Lane', lane],
    ['Attempts', `${message.attempts} in cycle ${message.cycle}`],
    ['First failed', `${moment(message.firstFailedAt)} (${relative(now, message.firstFailedAt)})`],
    ['Last failed', `${moment(message.lastFailedAt)} (${relative(now, message.lastFailedAt)})`],
    [
      'Settled',
      settledAt === undefined ? undefined : `${moment(settledAt)} by ${settledBy ?? 'unknown'}`,
    ],
  ])
}

/** Newest first: what it fails with now matters most. */
function attemptsOf(io: Io, page: Page, { history }: DeadLetterDetail): void {
  if (history.length === 0) return
  page.line`\n${bold('Attempts')}`
  page.table(
    [
      { title: '  #', of: ({ number }) => `  ${number}`, isNumber: true },
      { title: 'WHEN', of: ({ at }) => relative(io.now(), at) },
      { title: 'CLASS', of: (one) => one.class },
      { title: 'CODE', of: ({ code }) => code ?? '' },
      { title: 'WHAT FAILED', of: ({ message }) => message, least: 20 },
    ],
    [...history].reverse(),
  )
}

function previewOf(
  page: Page,
  { body, payloadBytes, isTombstone, contentType }: DeadLetterDetail,
): void {
  const about = [bytes(payloadBytes), contentType].filter((one) => one !== undefined).join(', ')
  page.line`\n${bold('Body')} ${dim(about)}`
  if (isTombstone) page.line`  There is none: this record deletes its key.`
  else if (body.isHidden) page.line`  You may not see it: that needs the action payload.`
  else if (body.preview === undefined) page.line`  There is no preview. As it came: add --unmasked`
  else page.block(safeJson(body.preview, 2))
}
