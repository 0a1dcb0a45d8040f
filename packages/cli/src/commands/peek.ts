import type { DrainedDeadLetter } from '@redrive/runtime'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { reasonOf } from '../failure.ts'
import type { CommonOptions, Io } from '../io.ts'
import { groupsOf, lastAttempt, look, type PeekedGroup, type Place } from '../peek/look.ts'
import { hint, isForPeople, print, say } from '../print.ts'
import type { Page } from '../text/page.ts'
import { bold, dim } from '../text/painted.ts'
import { safeJson } from '../text/safe.ts'
import { age, bytes, moment, number } from '../text/words.ts'

export interface PeekOptions extends CommonOptions {
  /** Most to look at. */
  readonly limit: number
  /** The number of a message to show in full. */
  readonly show?: number
  /** Look although the messages are near a limit of the broker. */
  readonly evenSo?: boolean
}

export type OpenPlace = (address: string, queue: string) => Promise<Place>

/** Lists, groups and shows what is in a queue, without a server and without consuming it. */
export async function peek(
  io: Io,
  open: OpenPlace,
  { address, queue }: { readonly address: string; readonly queue: string },
  options: PeekOptions,
): Promise<ExitCode> {
  const place = await open(address, queue)
  const { limit, evenSo } = options
  const looked = await closing(io, place, look(place, limit, evenSo === true))
  if (looked.refusal !== undefined) {
    throw new CommandError(EXIT.conflict, `${looked.refusal} To look all the same, add --even-so.`)
  }
  const { total, deadLetters } = looked
  const messages = deadLetters.map((one, at) => messageOf(one, at + 1))
  if (options.show !== undefined) return showOne(io, deadLetters, options.show, options)
  const groups = groupsOf(deadLetters)
  print(io, options, {
    json: { queue, total, looked: deadLetters.length, groups, messages },
    lines: messages,
    human: (page) => tables(io, page, { groups, messages }),
  })
  if (isForPeople(options)) {
    say(
      io,
    )`Looked at ${number(deadLetters.length)} of ${number(total)} in ${queue}; they are still there. One in full: --show N`
    if (place.trace !== undefined && deadLetters.length > 0) say(io)`${place.trace}`
    if (deadLetters.length > 0)
      hint(io, options)`To search and replay them: redrive init writes the config of a server.`
  }
  return EXIT.ok
}

/** Whatever happened: what was taken is back before anybody hears of it. What is left behind loses nobody what was read. */
async function closing<T>(io: Io, place: Place, work: Promise<T>): Promise<T> {
  try {
    return await work
  } finally {
    await place.close().catch((error: unknown) => {
      say(io)`Warning: the look may have left something behind. ${reasonOf(error)}`
    })
  }
}

interface PeekedMessage {
  readonly number: number
  readonly id: string
  readonly key: string
  readonly origin: string
  readonly class: string
  readonly signature: string
  readonly reason: string
  readonly message: string
  readonly attempts: number
  readonly lastFailedAt: number | undefined
  readonly bytes: number
}

function messageOf(one: DrainedDeadLetter, at: number): PeekedMessage {
  const { delivery, origin, reason } = one
  const last = lastAttempt(one)
  return {
    number: at,
    id: delivery.id,
    key: delivery.key,
    origin,
    class: last.class,
    signature: last.signature,
    reason,
    message: last.message,
    attempts: delivery.cycle.attempts,
    lastFailedAt: last.at || undefined,
    bytes: delivery.bytes.byteLength,
  }
}

interface Found {
  readonly groups: readonly PeekedGroup[]
  readonly messages: readonly PeekedMessage[]
}

function tables(io: Io, page: Page, { groups, messages }: Found): void {
  if (messages.length === 0) return page.line`The queue is empty.`
  const since = (at: number | undefined) => (at === undefined ? '' : age(io.now() - at))
  page.table<PeekedGroup>(
    [
      { title: 'SIGNATURE', of: ({ signature }) => bold(signature) },
      { title: 'CLASS', of: (group) => group.class },
      { title: 'COUNT', of: ({ count }) => number(count), isNumber: true },
      { title: 'SINCE', of: ({ firstFailedAt }) => since(firstFailedAt), isNumber: true },
      { title: 'LAST', of: ({ lastFailedAt }) => since(lastFailedAt), isNumber: true },
      { title: 'WHAT FAILED', of: ({ message }) => message, least: 20 },
    ],
    groups,
  )
  page.line``
  page.table<PeekedMessage>(
    [
      { title: 'N', of: (one) => number(one.number), isNumber: true },
      { title: 'CLASS', of: (one) => one.class },
      { title: 'FAILED', of: ({ lastFailedAt }) => since(lastFailedAt), isNumber: true },
      { title: 'ATTEMPTS', of: ({ attempts }) => number(attempts), isNumber: true },
      { title: 'SIZE', of: (one) => bytes(one.bytes), isNumber: true },
      { title: 'FROM', of: ({ origin }) => origin, least: 8 },
      { title: 'KEY', of: ({ key }) => key, least: 8 },
      { title: 'WHAT FAILED', of: ({ message }) => message, least: 20 },
    ],
    messages,
  )
}

function showOne(
  io: Io,
  deadLetters: readonly DrainedDeadLetter[],
  wanted: number,
  options: CommonOptions,
): ExitCode {
  const one = deadLetters[wanted - 1]
  if (one === undefined) {
    throw new CommandError(
      EXIT.notFound,
      `There is no message ${wanted}: there are ${deadLetters.length}.`,
    )
  }
  const { delivery, envelope } = one
  const text = textOf(delivery.bytes)
  const { history } = delivery.cycle
  print(io, options, {
    json: {
      ...messageOf(one, wanted),
      type: delivery.type,
      contentType: delivery.contentType,
      headers: delivery.headers,
      envelope,
      history,
      body: text ?? Buffer.from(delivery.bytes).toString('base64'),
      encoding: text === undefined ? 'base64' : 'utf8',
    },
    human: (page) => {
      const about = messageOf(one, wanted)
      page.line`${bold(about.message)}`
      page.facts([
        ['Id', about.id],
        ['Key', about.key],
        ['Type', delivery.type],
        ['From', about.origin],
        ['Class', about.class],
        ['Signature', about.signature],
        ['Reason', about.reason],
        ['Attempts', about.attempts],
        ['Failed', about.lastFailedAt === undefined ? undefined : moment(about.lastFailedAt)],
      ])
      if (Object.keys(delivery.headers).length > 0) page.line`\n${bold('Headers')}`
      page.facts(
        Object.entries(delivery.headers).map(([name, value]) => [`  ${name}`, headerText(value)]),
      )
      page.line`\n${bold('Body')} ${dim(bytes(delivery.bytes.byteLength))}`
      page.block(text ?? Buffer.from(delivery.bytes).toString('base64'))
    },
  })
  return EXIT.ok
}

const headerText = (value: unknown): string => (typeof value === 'string' ? value : safeJson(value))

function textOf(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    // Not UTF-8: shown as base64.
    return undefined
  }
}
