import type { DrainedDeadLetter } from '@redrive/runtime'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { reasonOf } from '../failure.ts'
import type { CommonOptions, Io } from '../io.ts'
import {
  groupsOf,
  lastFailure,
  look,
  type PeekedGroup,
  type PeekTarget,
} from '../peek/read-queue.ts'
import { hint, isForPeople, print, say } from '../print.ts'
import type { Page } from '../text/page.ts'
import { bold, dim } from '../text/painted.ts'
import { safeJson } from '../text/safe.ts'
import { age, bytes, isoTime, number } from '../text/format.ts'

export interface PeekOptions extends CommonOptions {
  /** Maximum number of messages to read. */
  readonly limit: number
  /** The number of a message to show in full. */
  readonly show?: number
  /** Peeks even near the delivery limit of the queue, or if the order may change. */
  readonly ignoreDeliveryLimit?: boolean
}

export type OpenPlace = (address: string, queue: string) => Promise<PeekTarget>

/** Lists, groups and shows the messages of a queue, without a server and without consuming them. */
export async function peek(
  io: Io,
  open: OpenPlace,
  { address, queue }: { readonly address: string; readonly queue: string },
  options: PeekOptions,
): Promise<ExitCode> {
  const target = await open(address, queue)
  const { limit, ignoreDeliveryLimit } = options
  const result = await closing(io, target, look(target, limit, ignoreDeliveryLimit === true))
  if (result.refusal !== undefined) {
    throw new CommandError(
      EXIT.conflict,
      `${result.refusal} To peek anyway, add --ignore-delivery-limit.`,
    )
  }
  const { total, deadLetters } = result
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
    )`Read ${number(deadLetters.length)} of ${number(total)} in ${queue} without consuming them. Show one in full: --show N`
    if (target.trace !== undefined && deadLetters.length > 0) say(io)`${target.trace}`
    if (deadLetters.length > 0)
      hint(io, options)`To search and replay them, create a server config: redrive init`
  }
  return EXIT.ok
}

/**
 * Closes the target before the result is used, so that the messages are already returned. A failed close only
 * prints a warning, because the result is still valid.
 */
async function closing<T>(io: Io, target: PeekTarget, work: Promise<T>): Promise<T> {
  try {
    return await work
  } finally {
    await target.close().catch((error: unknown) => {
      say(io)`Warning: the peek could not clean up at the broker. ${reasonOf(error)}`
    })
  }
}

interface PeekedMessage {
  readonly number: number
  /** Undefined: the message has no id. The catalog gives it one when it is ingested. */
  readonly id: string | undefined
  /** Undefined: the message has neither a key nor an id. */
  readonly key: string | undefined
  readonly origin: string
  readonly class: string
  readonly signature: string
  readonly reason: string
  readonly message: string
  readonly attempts: number
  readonly runs: number
  readonly handler: string | undefined
  readonly errorType: string | undefined
  readonly lastFailedAt: number | undefined
  readonly bytes: number
}

function messageOf(one: DrainedDeadLetter, at: number): PeekedMessage {
  const { delivery, origin, reason } = one
  const last = lastFailure(one)
  // A generated id is another one in each peek.
  const isGenerated = one.identity !== 'stable'
  const isOwnKey = !isGenerated || delivery.key !== delivery.id
  return {
    number: at,
    id: isGenerated ? undefined : delivery.id,
    key: isOwnKey ? delivery.key : undefined,
    origin,
    class: last.class,
    signature: last.signature,
    reason,
    message: last.message,
    attempts: delivery.cycle.attempts,
    runs: delivery.cycle.runs,
    handler: one.handler,
    errorType: last.type,
    lastFailedAt: last.at || undefined,
    bytes: delivery.bytes.byteLength,
  }
}

interface Tables {
  readonly groups: readonly PeekedGroup[]
  readonly messages: readonly PeekedMessage[]
}

function tables(io: Io, page: Page, { groups, messages }: Tables): void {
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
      { title: 'KEY', of: ({ key }) => key ?? '', least: 8 },
      { title: 'WHAT FAILED', of: ({ message }) => message, least: 20 },
    ],
    messages,
  )
}

function showOne(
  io: Io,
  deadLetters: readonly DrainedDeadLetter[],
  position: number,
  options: CommonOptions,
): ExitCode {
  const one = deadLetters[position - 1]
  if (one === undefined) {
    throw new CommandError(
      EXIT.notFound,
      `Message ${position} does not exist: only ${deadLetters.length} messages were read. To read more, increase --limit.`,
    )
  }
  const { delivery, envelope } = one
  const text = textOf(delivery.bytes)
  const { history } = delivery.cycle
  print(io, options, {
    json: {
      ...messageOf(one, position),
      type: delivery.type,
      contentType: delivery.contentType,
      headers: delivery.headers,
      envelope,
      history,
      body: text ?? Buffer.from(delivery.bytes).toString('base64'),
      encoding: text === undefined ? 'base64' : 'utf8',
    },
    human: (page) => {
      const about = messageOf(one, position)
      page.line`${bold(about.message)}`
      page.facts([
        ['Id', about.id],
        ['Key', about.key],
        ['Type', delivery.type],
        ['From', about.origin],
        ['Handler', about.handler],
        ['Class', about.class],
        ['Error type', about.errorType],
        ['Signature', about.signature],
        ['Reason', about.reason],
        ['Attempts', about.attempts],
        ['Failed runs', about.runs],
        ['Failed', about.lastFailedAt === undefined ? undefined : isoTime(about.lastFailedAt)],
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
