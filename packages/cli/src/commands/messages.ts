import type { DeadLetter, DeadLetterDetail, Output } from '@redrive/api'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { reasonOf } from '../failure.ts'
import type { CommonOptions, Io } from '../io.ts'
import { hint, print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { isBoundedFilter } from '@redrive/api/filter'
import { defined, type Filter, readFilter } from '../server/filter.ts'
import { shortIds, resolveId } from '../server/resolve-id.ts'
import type { Page } from '../text/page.ts'
import { bold, dim } from '../text/painted.ts'
import { safeJson } from '../text/safe.ts'
import { bytes, counted, duration, isoTime, number, relative } from '../text/format.ts'
import { messageTable } from './message-table.ts'

export interface ListMessagesOptions extends CommonOptions {
  readonly limit: number
  readonly cursor?: string
}

export async function listMessages(
  io: Io,
  words: readonly string[],
  options: ListMessagesOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const { limit, cursor } = options
  const { text: filter } = bounded(io, await readFilter(io, client, words, { isUnique: false }))
  const query = { filter, limit, ...defined({ cursor }) }
  const answer = await client.call('listDeadLetters', { query }, { signal: io.signal })
  print(io, options, {
    json: answer,
    lines: answer.deadLetters,
    human: (page) => {
      if (answer.deadLetters.length > 0) messageTable(io, page, answer.deadLetters)
      else if (answer.searchedTo === undefined) page.line`No dead letters match.`
      else page.line`No dead letters match so far.`
    },
  })
  sayRest(io, answer)
  const [first] = answer.deadLetters
  if (first !== undefined) {
    const short = shortIds(answer.deadLetters.map(({ id }) => id))(first.id)
    hint(io, options)`Show one in full: redrive messages show ${short}`
  }
  return EXIT.ok
}

/** Prints how to continue. A search that ran out of time has searched only part of the dead letters. */
function sayRest(io: Io, { nextCursor, searchedTo }: Output<'listDeadLetters'>): void {
  if (nextCursor === undefined) return
  if (searchedTo === undefined) say(io)`More results: add --limit 200, or --cursor ${nextCursor}`
  else say(io)`Searched back to ${isoTime(searchedTo)}. To continue, add --cursor ${nextCursor}`
}

/** One day, the default time range without a filter that bounds the search. */
const LOOK_BACK_MS = 86_400_000

/** Limits an unbounded filter to one day and prints the limit. The server rejects unbounded searches. */
function bounded(io: Io, { text, fields }: Filter): Filter {
  if (isBoundedFilter(fields)) return { text, fields }
  say(
    io,
  )`Limited to the last 24 h. For older dead letters, add a start time such as after:7d, or a group.`
  const after = io.now() - LOOK_BACK_MS
  return { text: `${text} after:${after}`.trim(), fields: { ...fields, after } }
}

/** Exports matching dead letters as JSON Lines while they arrive. */
export async function exportMessages(
  io: Io,
  words: readonly string[],
  options: CommonOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const filter = bounded(io, await readFilter(io, client, words, { isUnique: false }))
  const query = { filter: filter.text }
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
    throw incompleteExport(error, count, last, filter.fields)
  }
  return EXIT.ok
}

/**
 * Returns an error with the words to continue. The server stops an export that is too long, and cannot send a
 * reason in the middle of it. `before` excludes its own time, so it is 1 ms later than the last message:
 * others may have failed in the same millisecond. `after` is an absolute time, because a duration such as
 * 7d would mean another time later.
 */
function incompleteExport(
  cause: unknown,
  count: number,
  { lastFailedAt }: DeadLetter,
  { after }: Filter['fields'],
): CommandError {
  const from = after === undefined ? '' : `after:${isoTime(after)} `
  return new CommandError(
    EXIT.failure,
    [
      `Export stopped after ${number(count)} messages; the output is incomplete: ${reasonOf(cause)}.`,
      'An export contains at most 100,000 messages, and a restart of the server stops it.',
      `To continue, use the same filter, but with ${from}before:${isoTime(lastFailedAt + 1)}`,
      'Messages that failed in the same millisecond as the last one are exported again.',
    ].join('\n'),
    { cause },
  )
}

export interface ShowMessageOptions extends CommonOptions {
  /** Shows the original body. The server writes this to the audit log. */
  readonly unmasked?: boolean
  /** Why the user needs the original. Required with `unmasked`. */
  readonly reason?: string
  /** Shows the body of this earlier cycle, before a replay edited it. Only with `unmasked`. */
  readonly cycle?: number
}

export async function showMessage(
  io: Io,
  given: string,
  options: ShowMessageOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const id = await resolveId(io, client, 'message', given)
  const { unmasked, reason, cycle } = options
  if (cycle !== undefined && unmasked !== true)
    throw new CommandError(EXIT.usage, '--cycle requires --unmasked.')
  const query =
    unmasked === true
      ? { reason: requiredReason(reason, '--unmasked'), ...defined({ cycle }) }
      : undefined
  const [message, { items }, { cycles }, payload] = await Promise.all([
    client.call('getDeadLetter', { params: { id } }, { signal: io.signal }),
    client.call('listDeadLetterReplays', { params: { id } }, { signal: io.signal }),
    client.call('listCycles', { params: { id } }, { signal: io.signal }),
    query === undefined
      ? undefined
      : client.call('getPayload', { params: { id }, query }, { signal: io.signal }),
  ])
  print(io, options, {
    json: { ...message, replays: items, cycles, ...(payload === undefined ? {} : { payload }) },
    human: (page) => {
      messageFacts(io, page, message)
      failuresOf(io, page, message)
      const headers = payload?.headers ?? message.headers
      if (Object.keys(headers).length > 0) {
        page.line`\n${bold('Headers')}${dim(payload === undefined ? ' (masked)' : '')}`
        page.facts(
          Object.entries(headers).map(([name, value]) => [`  ${name}`, shownHeader(value)]),
        )
      }
      if (payload === undefined) previewOf(page, message)
      else {
        const about = cycle === undefined ? bytes(message.payloadBytes) : `of cycle ${cycle}`
        page.line`\n${bold('Body')} ${dim(about)}`
        page.block(payload.text ?? payload.bytes)
      }
      earlierCycles(io, page, cycles)
      for (const { run, state, reason, cycle: replayed } of items) {
        page.line`\nReplay ${run}, cycle ${replayed}: ${state}${reason === undefined ? '' : ` (${reason})`}`
      }
    },
  })
  if (message.status === 'open') {
    hint(io, options)`\nShow similar failures: redrive groups show ${message.group}`
    hint(io, options)`Replay only this one: redrive replay plan --id ${id}`
  }
  return EXIT.ok
}

/** Returns the reason, which the server writes to the audit log. */
export function requiredReason(reason: string | undefined, option: string): string {
  if (reason !== undefined && reason.trim() !== '') return reason
  throw new CommandError(
    EXIT.usage,
    `${option} requires --reason, which the server writes to the audit log: ${option} --reason "ticket 1234: amount is wrong"`,
  )
}

/** A mask that finds nothing may be misspelt, so the body is not shown. */
const hiddenBy = (mask: string) =>
  `Hidden: the mask ${mask} found nothing. To show the original, add --unmasked --reason …`

type Cycle = Output<'listCycles'>['cycles'][number]

/** Prints the earlier cycles, newest first, with the body that a replay replaced. */
function earlierCycles(io: Io, page: Page, cycles: readonly Cycle[]): void {
  if (cycles.length === 0) return
  page.line`\n${bold('Earlier cycles')}`
  page.table(
    [
      { title: '  CYCLE', of: ({ cycle }) => `  ${cycle}`, isNumber: true },
      { title: 'LAST FAILED', of: ({ lastFailedAt }) => relative(io.now(), lastFailedAt) },
      { title: 'ATTEMPTS', of: ({ attempts }) => number(attempts), isNumber: true },
      { title: 'REASON', of: ({ reason }) => reason },
      { title: 'BODY', of: ({ isEdited }) => (isEdited ? 'edited for the replay' : 'unchanged') },
      { title: 'WHAT FAILED', of: ({ history }) => history.at(-1)?.message ?? '', least: 20 },
    ],
    [...cycles].reverse(),
  )
  for (const { cycle, body } of cycles) {
    if (body === undefined) continue
    page.line`\n${bold(`Body of cycle ${cycle}, before the edit`)}`
    if (body.isHidden) page.line`  Hidden: permission "view_payload" is required.`
    else if (body.hiddenBy !== undefined) page.line`  ${hiddenBy(body.hiddenBy)}`
    else if (body.preview === undefined)
      page.line`  No preview. To show the original, add --unmasked --cycle ${cycle} --reason …`
    else page.block(safeJson(body.preview, 2))
  }
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
    ['Origin', message.origin === message.source ? undefined : message.origin],
    ['Handler', message.handler],
    ['Status', quarantined ? `${message.status}, quarantined` : message.status],
    ['Class', message.class],
    ['Code', message.code],
    ['Reason', message.reason],
    ['Type', message.type],
    ['Message id', message.messageId],
    ['Key', message.key],
    ['Lane', lane],
    ['Attempts', attemptsText(message)],
    ['First failed', `${isoTime(message.firstFailedAt)} (${relative(now, message.firstFailedAt)})`],
    ['Last failed', `${isoTime(message.lastFailedAt)} (${relative(now, message.lastFailedAt)})`],
    [
      'Settled',
      settledAt === undefined ? undefined : `${isoTime(settledAt)} by ${settledBy ?? 'unknown'}`,
    ],
  ])
}

function attemptsText({ attempts, runs, cycle }: DeadLetterDetail): string {
  const text = `${number(attempts)} in cycle ${cycle}`
  return runs === attempts ? text : `${text}, ${counted(runs, 'failed run')}`
}

/** Prints the failures, newest first, because the latest one matters most. */
function failuresOf(io: Io, page: Page, { history }: DeadLetterDetail): void {
  const last = history.at(-1)
  if (last === undefined) return
  const omitted = last.number - history.length
  page.line`\n${bold('Failures')}${dim(omitted > 0 ? ` (${counted(omitted, 'older one')} omitted)` : '')}`
  page.table(
    [
      { title: '  #', of: ({ number }) => `  ${number}`, isNumber: true },
      { title: 'WHEN', of: ({ at }) => relative(io.now(), at) },
      { title: 'WAITED', of: ({ waitedMs }) => duration(waitedMs), isNumber: true },
      { title: 'COUNTED', of: (one) => (one.counted ? 'yes' : 'no') },
      { title: 'CLASS', of: (one) => one.class },
      { title: 'CODE', of: ({ code }) => code ?? '' },
      { title: 'TYPE', of: ({ type }) => type ?? '' },
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
  if (isTombstone) page.line`  No body: this record is a tombstone, which deletes its key.`
  else if (body.isHidden) page.line`  Hidden: permission "view_payload" is required.`
  else if (body.hiddenBy !== undefined) page.line`  ${hiddenBy(body.hiddenBy)}`
  else if (body.preview === undefined)
    page.line`  No preview. To show the original, add --unmasked --reason …`
  else page.block(safeJson(body.preview, 2))
}
