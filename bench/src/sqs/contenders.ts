// The bare client, the usual library and Redrive, with the same number of messages in flight.
import {
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
} from '@aws-sdk/client-sqs'
import type { PolicyOptions } from '@redrive/core'
import { consume } from '@redrive/runtime'
import { sqs } from '@redrive/sqs'
import { Consumer } from 'sqs-consumer'
import type { Contender, Stage } from './contender.ts'

const BATCH = 10
const WAIT_S = 1

/** Reads batches of ten with as many loops as fit, and deletes each batch when its handlers are done. */
export function bareLoops(stage: Stage): Contender {
  const { client, url, concurrency, handler, deadLetters } = stage
  let stopping = new AbortController()
  let loops: Promise<unknown>[] = []
  const settle = async (messages: readonly Message[]) => {
    const results = await Promise.allSettled(messages.map(() => handler()))
    const entries = messages.map(({ Body, ReceiptHandle }, index) => ({
      Id: String(index),
      MessageBody: Body,
      ReceiptHandle,
    }))
    const dead = entries.filter((_, index) => results[index]?.status === 'rejected')
    if (dead.length > 0) {
      const Entries = dead.map(({ Id, MessageBody }) => ({ Id, MessageBody }))
      await client.send(new SendMessageBatchCommand({ QueueUrl: deadLetters, Entries }))
    }
    const Entries = entries.map(({ Id, ReceiptHandle }) => ({ Id, ReceiptHandle }))
    await client.send(new DeleteMessageBatchCommand({ QueueUrl: url, Entries }))
  }
  const loop = async ({ signal }: AbortController) => {
    while (!signal.aborted) {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl: url,
          MaxNumberOfMessages: BATCH,
          WaitTimeSeconds: WAIT_S,
          MessageAttributeNames: ['All'],
          MessageSystemAttributeNames: ['All'],
        }),
      )
      if (Messages.length > 0) await settle(Messages)
    }
  }
  return {
    start() {
      stopping = new AbortController()
      loops = Array.from({ length: concurrency / BATCH }, () => loop(stopping))
    },
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
    close: () => undefined,
  }
}

/** The usual library, one instance for each ten messages in flight: an instance handles one batch at a time. */
export function consumers({ client, url, concurrency, handler }: Stage): Contender {
  const all = Array.from({ length: concurrency / BATCH }, () =>
    Consumer.create({
      queueUrl: url,
      sqs: client,
      batchSize: BATCH,
      waitTimeSeconds: WAIT_S,
      pollingCompleteWaitTimeMs: STOP_MS,
      handleMessageBatch: async (messages) => {
        await Promise.all(messages.map(() => handler()))
        return messages
      },
    }),
  )
  return {
    start: () => all.forEach((one) => one.start()),
    stop: async () => {
      await Promise.all(all.map(stopped))
    },
    close: () => undefined,
  }
}

/** 5 s: a request for messages ends before. */
const STOP_MS = 5_000

async function stopped(one: Consumer): Promise<void> {
  if (!one.status.isRunning) return
  const ended = new Promise((resolve) => one.once('stopped', () => resolve(undefined)))
  one.stop()
  await ended
}

/** Returns `consume(sqs(…), handler, policy)`, paused between the samples. */
export const redrive =
  (policy: PolicyOptions) =>
  async ({ client, queue, concurrency, handler }: Stage): Promise<Contender> => {
    const transport = sqs({ client, queue, wait: '1s' })
    const consumer = await consume(transport, handler, { concurrency, logger: 'off', ...policy })
    return {
      start: () => consumer.resume(),
      stop: () => consumer.pause(),
      close: () => consumer.stop(),
    }
  }
