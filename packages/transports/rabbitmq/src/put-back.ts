import { RedriveError } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import type { ChannelModel, Options } from 'amqplib'
import { answered, closeChannel } from './connection/connection.ts'
import { frameMaxOf } from './connection/socket.ts'
import { type Copy, type RabbitMqDelivery, storedProperties } from './delivery.ts'
import type { WrappedMessage } from './easynetq.ts'
import { asideIn } from './message/aside.ts'
import { checkPublishable } from './message/check-encodable.ts'
import { type HeaderTypes, withTypes } from './message/header-types.ts'
import { type Headers, NO_HEADERS, propertiesOf } from './message/properties.ts'
import { textOf } from './unreadable.ts'

/**
 * Returns what a dead letter needs to be put back: its queue, and the headers that are not among those of the
 * producer. Redrive and the broker wrote them, so they are JSON. A message that was in the body of another one also
 * needs that one.
 */
export function putBackEnvelopeOf(
  queue: string,
  { raw, headers: own }: Pick<RabbitMqDelivery, 'raw' | 'headers'>,
  wrapped?: Pick<WrappedMessage, 'outer'>,
): Readonly<Record<string, string>> {
  const { headers = NO_HEADERS } = propertiesOf(raw)
  const isOther = (name: string) => wrapped !== undefined || !Object.hasOwn(own, name)
  const others = Object.entries(headers).filter(([name]) => isOther(name))
  const place = {
    deadLetterQueue: queue,
    ...(wrapped === undefined ? {} : { deadLetterMessage: wrapped.outer }),
  }
  if (others.length === 0) return place
  try {
    return {
      ...place,
      deadLetterHeaders: JSON.stringify(Object.fromEntries(others)),
    }
  } catch {
    // Any program can write these headers, such as a table that is too deep. This one can be replayed, but not put back.
    return {}
  }
}

/** Returns the dead letter as it was in its queue, and the queue. Undefined: it was drained by an older release. */
function putBackOf({
  delivery,
  envelope,
}: DrainedDeadLetter): (Omit<Copy, 'truncated'> & { readonly queue: string }) | undefined {
  const { deadLetterQueue: queue, deadLetterHeaders = '{}', headerTypes, ...texts } = envelope
  if (queue === undefined) return undefined
  const others = JSON.parse(deadLetterHeaders) as Headers
  const { deadLetterMessage } = texts
  if (deadLetterMessage !== undefined) return { queue, ...outerOf(deadLetterMessage, others) }
  // Headers that a copy stores in one header were not headers of the dead letter.
  const aside = asideIn(others).headers
  const own = Object.entries(delivery.headers).filter(([name]) => !Object.hasOwn(aside, name))
  const types = headerTypes === undefined ? undefined : (JSON.parse(headerTypes) as HeaderTypes)
  const headers = withTypes({ ...Object.fromEntries(own), ...others }, types)
  const { bytes } = delivery
  return {
    queue,
    content: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    properties: {
      ...storedProperties(texts, delivery),
      ...(Object.keys(headers).length === 0 ? {} : { headers }),
    },
  }
}

/** Returns the message that contained the dead letter in its body. */
function outerOf(stored: string, headers: Headers): Omit<Copy, 'truncated'> {
  const { body, ...properties } = JSON.parse(stored) as { readonly body: string }
  return {
    content: Buffer.from(body),
    properties: { ...properties, ...(Object.keys(headers).length === 0 ? {} : { headers }) },
  }
}

/**
 * Publishes dead letters to the queues that they were drained from. It uses a separate channel and adds no header
 * to recognise returned messages: if the broker returns one, the whole call rejects.
 */
export async function putBack(
  connection: ChannelModel,
  deadLetters: readonly DrainedDeadLetter[],
  confirmTimeoutMs: number,
): Promise<void> {
  const messages = deadLetters.map((one) => {
    const message = putBackOf(one)
    if (message === undefined) throw unknownQueue(one)
    checkHeaders(one, message.properties, frameMaxOf(connection))
    return message
  })
  const channel = await answered(connection.createConfirmChannel())
  const returned = new Set<string>()
  channel.on('return', ({ fields }) => void returned.add(fields.routingKey))
  // The promise below reports it.
  channel.on('error', () => undefined)
  try {
    for (const { queue, content, properties } of messages) {
      channel.publish('', queue, content, { ...properties, persistent: true, mandatory: true })
    }
    await withTimeout(channel.waitForConfirms(), confirmTimeoutMs, throwUnconfirmed)
    if (returned.size > 0) throw missingQueues([...returned])
  } finally {
    await closeChannel(channel)
  }
}

function checkHeaders(
  { delivery }: DrainedDeadLetter,
  properties: Options.Publish,
  frameMax: number,
): void {
  try {
    checkPublishable(properties, frameMax)
  } catch (error) {
    throw new RedriveError(
      'REFUSED',
      `The dead letter "${delivery.id}" cannot be published with all its headers: ${textOf(error)} Replay it without the large header, or discard it.`,
      { cause: error },
    )
  }
}

function throwUnconfirmed(): never {
  throw new RedriveError(
    'OUTCOME_UNKNOWN',
    'The broker may or may not have stored the dead letters: it did not confirm them in time.',
  )
}

const missingQueues = (queues: readonly string[]) =>
  new RedriveError(
    'UNROUTABLE',
    `The queue ${queues.map((queue) => `"${queue}"`).join(', ')} does not exist, so its dead letters cannot be put back. Create it, or start the consumer, which creates it.`,
  )

const unknownQueue = ({ delivery }: DrainedDeadLetter) =>
  new RedriveError(
    'REFUSED',
    `The dead letter "${delivery.id}" has no stored queue and headers: an older release drained it, or its headers cannot be stored. Replay or discard it.`,
  )
