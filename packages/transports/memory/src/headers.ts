import {
  type Delivery,
  decodeHeaders,
  type EncodedHeaders,
  encodeHeaders,
  type FailureCycle,
} from '@redrive/core'
import type { Handed, MemoryMessage } from './queue.ts'

/** A delivery with the tag that settles it. */
export interface MemoryDelivery extends Delivery {
  readonly tag: number
}

export function toDelivery(queue: string, { tag, message, deliveryCount }: Handed): MemoryDelivery {
  const decoded = decodeHeaders(message.headers)
  const id = decoded.id ?? message.id
  return {
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
}

export interface Copy {
  readonly message: MemoryMessage
  readonly truncated: number
}

/** The same message with a later chapter of its history. Bytes and the producer's headers stay as they are. */
export function copyOf(
  delivery: Delivery,
  cycle: FailureCycle,
  { reason, stack, budgetBytes, replayId = delivery.replayId }: CopyOptions,
): Copy {
  const { id, key, source, type, lane, bytes, contentType } = delivery
  const encoded: EncodedHeaders = encodeHeaders(
    { id, key, source, replayId, cycle, reason, stack },
    budgetBytes,
  )
  const headers = { ...delivery.headers, ...encoded.headers }
  return { message: { id, bytes, contentType, type, lane, headers }, truncated: encoded.truncated }
}

export interface CopyOptions {
  readonly reason: string | undefined
  readonly stack?: string | undefined
  readonly budgetBytes: number
  readonly replayId?: string | undefined
}
