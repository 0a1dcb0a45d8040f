// The lower bounds: handwritten code against amqplib, as fast as possible.
import type { ConfirmChannel, ConsumeMessage } from 'amqplib'
import { connection } from './broker.ts'
import type { Contender, Stage } from './contender.ts'

/** Acknowledges each message when its handler is done; a failure would not be noticed. */
export async function bareAcks({ url, queue, prefetch, handler }: Stage): Promise<Contender> {
  const opened = await connection(url)
  const channel = await opened.createChannel()
  const onMessage = (message: ConsumeMessage | null) => {
    if (message !== null) void handler().then(() => channel.ack(message))
  }
  let tag = ''
  return {
    async start() {
      await channel.prefetch(prefetch)
      tag = (await channel.consume(queue, onMessage)).consumerTag
    },
    async stop() {
      if (tag !== '') await channel.cancel(tag)
    },
    close: () => opened.close(),
  }
}

/** Handles a failure on the one channel that consumes and publishes. */
type OnFailure = (channel: ConfirmChannel, message: ConsumeMessage, stage: Stage) => void

/** Uses one connection and one channel for everything, because a second one would only cost time. */
async function confirming(stage: Stage, onFailure: OnFailure): Promise<Contender> {
  const opened = await connection(stage.url)
  const channel = await opened.createConfirmChannel()
  const onMessage = (message: ConsumeMessage | null) => {
    if (message === null) return
    stage.handler().then(
      () => channel.ack(message),
      () => onFailure(channel, message, stage),
    )
  }
  let tag = ''
  return {
    async start() {
      await channel.prefetch(stage.prefetch)
      tag = (await channel.consume(stage.queue, onMessage)).consumerTag
    },
    async stop() {
      if (tag !== '') await channel.cancel(tag)
    },
    close: () => opened.close(),
  }
}

const deadLetter: OnFailure = (channel, message, { deadLetters }) =>
  moveTo(deadLetters, channel, message, 1)

export const confirmedDeadLetters = (stage: Stage): Promise<Contender> =>
  confirming(stage, deadLetter)

const ATTEMPT = 'x-attempt'

/**
 * Republishes to the end of the same queue with the attempt number in a header, then to the
 * dead-letter queue.
 */
export const confirmedRetries =
  (attempts: number) =>
  (stage: Stage): Promise<Contender> =>
    confirming(stage, (channel, message, { queue, deadLetters }) => {
      const made = Number(message.properties.headers?.[ATTEMPT] ?? 1)
      moveTo(made < attempts ? queue : deadLetters, channel, message, made + 1)
    })

/** Publishes a copy, waits for the confirm, and acknowledges the original. */
function moveTo(
  queue: string,
  channel: ConfirmChannel,
  message: ConsumeMessage,
  attempt: number,
): void {
  const { messageId, contentType } = message.properties as {
    messageId: string
    contentType: string
  }
  const options = { persistent: true, messageId, contentType, headers: { [ATTEMPT]: attempt } }
  channel.sendToQueue(queue, message.content, options, (error: unknown) => {
    if (error === null) channel.ack(message)
    else channel.nack(message)
  })
}
