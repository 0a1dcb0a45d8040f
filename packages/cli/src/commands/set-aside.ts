import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { hint, print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { defined } from '../server/filter.ts'
import { confirmed, mutate } from '../server/mutate.ts'
import { certainIds, resolveId, shortIds } from '../server/resolve-id.ts'
import { bytes, counted, relative } from '../text/format.ts'
import { batchExit } from './discard.ts'
import { requiredReason } from './messages.ts'

const KIND = 'set-aside message'

export interface ListSetAsideOptions extends CommonOptions {
  readonly source?: string[]
  readonly status?: ('open' | 'requested' | 'replaying' | 'replayed' | 'discarded')[]
  readonly limit: number
  readonly cursor?: string
}

/** Lists messages that could not be catalogued as dead letters. */
export async function listSetAside(io: Io, options: ListSetAsideOptions): Promise<ExitCode> {
  const { source: sources, status: statuses, limit, cursor } = options
  const query = defined({ sources, statuses, limit, cursor })
  const answer = await connect(io, options).call('listSetAside', { query }, { signal: io.signal })
  const { messages } = answer
  const short = shortIds(messages.map(({ id }) => id))
  print(io, options, {
    json: answer,
    lines: messages,
    human: (page) => {
      if (messages.length === 0) page.line`No messages are set aside.`
      else {
        page.table(
          [
            { title: 'ID', of: ({ id }) => short(id) },
            { title: 'SOURCE', of: ({ source }) => source, least: 10 },
            { title: 'WHEN', of: ({ at }) => relative(io.now(), at) },
            { title: 'STATUS', of: ({ status }) => status },
            { title: 'SIZE', of: ({ payloadBytes }) => bytes(payloadBytes), isNumber: true },
            { title: 'WHY', of: ({ explanation }) => explanation, least: 20 },
          ],
          messages,
        )
      }
    },
  })
  if (answer.nextCursor !== undefined)
    say(io)`More results: add --limit 200, or --cursor ${answer.nextCursor}`
  const [first] = messages
  if (first !== undefined) hint(io, options)`Show one: redrive set-aside show ${short(first.id)}`
  return EXIT.ok
}

export interface ShowSetAsideOptions extends CommonOptions {
  readonly payload?: boolean
  /** Why the user needs the payload. Required with `payload`. */
  readonly reason?: string
}

/** Shows one message, with `--payload` also its body and headers. */
export async function showSetAside(
  io: Io,
  given: string,
  options: ShowSetAsideOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const query =
    options.payload === true ? { reason: requiredReason(options.reason, '--payload') } : undefined
  const params = { id: await resolveId(io, client, KIND, given) }
  const call = { signal: io.signal }
  const message = await client.call('getSetAside', { params }, call)
  const payload =
    query === undefined
      ? undefined
      : await client.call('getSetAsidePayload', { params, query }, call)
  print(io, options, {
    json: payload === undefined ? message : { ...message, payload },
    human: (page) => {
      page.facts([
        ['Id', message.id],
        ['Source', message.source],
        ['Why', message.explanation],
        ['Status', message.status],
        ['Set aside', relative(io.now(), message.at)],
        ['Message id', message.messageId],
        ['Key', message.key],
        ['Type', message.type],
        ['Origin', message.origin],
        ['Size', bytes(message.payloadBytes)],
        ['SHA-256', message.sha256],
        ['Requested by', message.requestedBy],
        ['Without headers', message.withoutHeaders.join(', ')],
        ['Last replay', message.replayError],
      ])
      if (payload === undefined) return
      page.line`Headers`
      page.block(payload.encodedHeaders ?? 'not stored')
      page.line`Body`
      page.block(Buffer.from(payload.bytes, 'base64').toString())
    },
  })
  return EXIT.ok
}

/** An approval is for the request that the approver has seen: `redrive set-aside show` has its headers. */
const SKIPPED_APPROVAL =
  'the current status, or because the request leaves out other headers than --without-header names'

/** Returns the flags for an approval of the same headers. */
const flagsOf = (withoutHeaders: readonly string[] = []): string =>
  withoutHeaders.map((name) => ` --without-header '${name.replaceAll("'", `'\\''`)}'`).join('')

const CHANGES = {
  replay: { operation: 'replaySetAside', question: 'Request a replay of', done: 'requested' },
  approve: { operation: 'approveSetAside', question: 'Approve the replay of', done: 'approved' },
  discard: { operation: 'discardSetAside', question: 'Discard', done: 'discarded' },
  reopen: { operation: 'reopenSetAside', question: 'Reopen', done: 'open again' },
} as const

export interface ChangeSetAsideOptions extends CommonOptions {
  readonly withoutHeader?: string[]
}

/** Requests or approves a replay of messages, or discards or reopens them. */
export async function changeSetAside(
  io: Io,
  what: keyof typeof CHANGES,
  given: readonly string[],
  options: ChangeSetAsideOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const ids = await certainIds(io, client, KIND, given)
  const { operation, question, done } = CHANGES[what]
  const { withoutHeader: withoutHeaders } = options
  await confirmed(io, options, `${question} ${counted(ids.length, 'message')}?`)
  const result = await mutate(io, client, options, operation, {
    body: { ids, ...(withoutHeaders === undefined ? {} : { withoutHeaders }) },
  })
  if (result === undefined) return EXIT.ok
  const { changed, skipped } = result.output
  print(io, options, {
    json: result.output,
    human: (page) => {
      page.line`${counted(changed, 'message')} ${done}.`
      if (skipped.length > 0)
        page.line`${counted(skipped.length, 'message')} skipped, because of ${what === 'approve' ? SKIPPED_APPROVAL : 'the current status'}:`
      for (const id of skipped) page.line`  ${id}`
    },
  })
  if (what === 'replay' && changed > 0)
    hint(
      io,
      options,
    )`Another person approves it: redrive set-aside approve ${ids.join(' ')}${flagsOf(withoutHeaders)}`
  return batchExit(changed, skipped.length)
}
