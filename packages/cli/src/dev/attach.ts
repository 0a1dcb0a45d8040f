import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError, EXIT } from '../exit.ts'
import { canAsk, type Io } from '../io.ts'
import { say } from '../print.ts'
import { type Address, addressOf } from './address.ts'
import { askUntilAborted } from './ask.ts'
import type { Sources } from './config.ts'
import { ATTACHED } from './folder.ts'
import type { Mode } from './marker.ts'
import { modeOf } from './mode.ts'
import { findQueues } from './attached-queues.ts'
import { putBackCommandLine, quoted } from './quoted.ts'
import { step } from './step.ts'

export interface AttachOptions {
  /** Address of a RabbitMQ broker. */
  readonly attach: string
  /** Queue that the consumers read. */
  readonly queue: string
  /** Queues with dead letters. Default: the ones of Redrive for the queue. */
  readonly deadLetterQueue?: readonly string[]
  /** Takes the dead letters without a question. */
  readonly yes?: boolean
}

/** A source on the broker of the user. */
export interface AttachedSources {
  readonly sources: Sources
  /** Whether the user allows that the server moves dead letters into its catalog. */
  readonly mayTake: boolean
}

/** A queue of the user whose address is complete. */
export interface Broker extends AttachOptions, Address {
  readonly mode: Mode
}

/** Checks the address of a broker, and replaces its placeholders. */
export async function brokerOf(io: Io, options: AttachOptions): Promise<Broker> {
  const { url, text } = await addressOf(io, '--attach', options.attach)
  if (!/^amqps?:\/\//.test(url) || !URL.canParse(url)) {
    throw new CommandError(
      EXIT.usage,
      '--attach: expected an address such as amqp://user:password@host:5672. For other brokers, use redrive init and redrive serve.',
    )
  }
  return { ...options, url, text, mode: modeOf(url, options.queue) }
}

/**
 * Counts the dead letters of a queue without taking one, and asks whether the server may move them. Returns
 * undefined when the user leaves with Ctrl-C.
 */
export async function attach(
  io: Io,
  folder: string,
  options: Broker,
): Promise<AttachedSources | undefined> {
  const { url, text, queue } = options
  const { found, unread, place } = await step(io, `Queues of ${queue}, read only`, () =>
    findQueues(url, queue, options.deadLetterQueue),
  )
  for (const { name, depth } of found) {
    if (depth === undefined) say(io)`  ${name} does not exist.`
    else say(io)`  ${name} has ${depth} messages.`
  }
  const all = [...unread, ...found].map(({ name }) => quoted(name)).join(' ')
  for (const { name } of unread)
    say(io)`  ${name} exists, too, and is not read. To read all: --dead-letter-queue ${all}`
  const names = found.map(({ name }) => name).join(', ')
  const mayTake = await isAllowed(io, options, { names, folder })
  if (mayTake === undefined) return undefined
  // A later --fresh must not delete messages that are only in this folder.
  if (mayTake) writeFileSync(join(folder, ATTACHED), JSON.stringify({ queue }))
  return { sources: { [queue]: { rabbitmq: { ...place, url: text } } }, mayTake }
}

async function isAllowed(
  io: Io,
  { yes, queue }: AttachOptions,
  { names, folder }: { readonly names: string; readonly folder: string },
): Promise<boolean | undefined> {
  if (yes) return true
  say(
    io,
  )`The server moves messages from ${names} into its catalog, and removes them from the broker.`
  say(
    io,
  )`To return them later, run in another terminal, while redrive dev runs: ${putBackCommandLine(queue, join(folder, 'redrive.config.json'))}`
  const question = `Take the messages of ${names}?`
  const isAgreed = canAsk(io) ? await askUntilAborted(io, question) : false
  if (isAgreed === false)
    say(
      io,
    )`Nothing is taken, and the catalog stays empty. To take the messages, start again with --yes.`
  return isAgreed
}
