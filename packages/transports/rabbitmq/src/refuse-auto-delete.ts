import { RedriveError } from '@redrive/core'
import type { ChannelModel } from 'amqplib'
import { declareRefusal, differenceIn } from './queue-refusal.ts'

/** Quorum queues have no priorities, so the broker never creates this queue. */
const IMPOSSIBLE = { 'x-queue-type': 'quorum', 'x-max-priority': 1 }

/**
 * Throws if the broker deletes an existing queue, with its messages, when its last consumer leaves. The broker names
 * only the first difference and compares `durable` before `auto_delete`, so both values of `durable` are tried.
 */
export async function refuseAutoDelete(connection: ChannelModel, queue: string): Promise<void> {
  for (const durable of [true, false]) {
    const settings = { durable, autoDelete: false, arguments: IMPOSSIBLE }
    const refusal = await declareRefusal(connection, queue, settings)
    const difference = differenceIn(refusal)
    if (difference === 'auto_delete') throw autoDeleted(queue, refusal)
    if (difference !== 'durable') return
  }
}

const autoDeleted = (queue: string, cause: unknown) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The queue ${queue} is declared with auto-delete. RabbitMQ deletes it, with the messages in it, when its last consumer pauses or stops. Create a queue without auto-delete, bind it to the same exchanges, and consume from it.`,
    { cause },
  )
