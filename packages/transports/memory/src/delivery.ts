import {
  type Delivery,
  decodeHeaders,
  type Drop,
  type EncodedHeaders,
  encodeHeaders,
  type FailureCycle,
  type Settle,
} from '@redrive/core'
import { serializeConfirmation } from '@redrive/runtime'
import type { Handed, MemoryMessage } from './queue.ts'

/** A delivery with the tag that settles it. */
export interface MemoryDelivery extends Delivery {
  readonly tag: number
}

export function toDelivery(queue: string, { tag, message, deliveryCount }: Handed): MemoryDelivery {
  const decoded = decodeHeaders(message.headers)
  const id = decoded.id ?? message.id
  const delivery: MemoryDelivery = {
    tag,
    id,
    source: queue,
    lane: message.lane,
    key: decoded.key ?? id,
    type: message.type,
    bytes: message.bytes,
    contentType: message.contentType,
    headers: decoded.foreign,
    cycle: decoded.cycle,
    deliveryCount,
    replayId: decoded.replayId,
    headerProblems: decoded.problems,
  }
  const { replaces } = decoded
  return replaces === undefined ? delivery : Object.assign(delivery, { replaces })
}

export interface Copy {
  readonly message: MemoryMessage
  readonly truncated: number
}

/** Copies the message with an updated history. Bytes and the producer's headers do not change. */
export function copyOf(
  delivery: Delivery,
  cycle: FailureCycle,
  { reason, handler, stack, budgetBytes, replayId = delivery.replayId }: CopyOptions,
): Copy {
  const { id, key, source, replaces, type, lane, bytes, contentType } = delivery
  const encoded: EncodedHeaders = encodeHeaders(
    { id, key, source, replayId, replaces, cycle, reason, handler, stack },
    budgetBytes,
  )
  const headers = { ...delivery.headers, ...encoded.headers }
  return { message: { id, bytes, contentType, type, lane, headers }, truncated: encoded.truncated }
}

/** Returns a consumer's confirmation of a replay as a message for the control plane. */
export function confirmationOf(
  delivery: MemoryDelivery,
  decision: Settle | Drop,
  at: number,
): MemoryMessage {
  const bytes = serializeConfirmation(delivery, decision, at)
  const contentType = 'application/json'
  return { id: delivery.id, bytes, contentType, type: undefined, lane: undefined, headers: {} }
}

export interface CopyOptions {
  readonly reason: string | undefined
  readonly handler?: string | undefined
  readonly stack?: string | undefined
  readonly budgetBytes: number
  readonly replayId?: string | undefined
}
