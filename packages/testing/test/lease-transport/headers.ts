import { type Delivery, decodeHeaders, encodeHeaders, type FailureCycle } from '@redrive/core'
import { CAPABILITIES } from './capabilities.ts'
import type { StoredMessage } from './group.ts'
import type { Claimed } from './store.ts'

/** A delivery with the token of its lease. */
export interface LeaseDelivery extends Delivery {
  readonly token: string
}

export function toDelivery(source: string, claimed: Claimed): LeaseDelivery {
  const { message, token, deliveryCount } = claimed
  const decoded = decodeHeaders(message.headers)
  const id = decoded.id ?? message.id
  return {
    token,
    id,
    source,
    lane: undefined,
    key: decoded.key ?? id,
    type: message.type,
    bytes: message.bytes,
    contentType: message.contentType,
    headers: decoded.foreign,
    cycle: decoded.cycle,
    deliveryCount,
    replayId: decoded.replayId,
    headerProblems: decoded.problems,
    ...(decoded.replaces === undefined ? {} : { replaces: decoded.replaces }),
  }
}

export interface CopyState {
  readonly cycle: FailureCycle
  readonly reason?: string | undefined
  readonly handler?: string | undefined
  readonly stack?: string | undefined
  readonly replayId?: string | undefined
}

/** Returns the same message with the state of its next step, and how many attempts did not fit. */
export function copyOf(
  delivery: Delivery,
  { cycle, reason, handler, stack, replayId = delivery.replayId }: CopyState,
): { readonly message: StoredMessage; readonly truncated: number } {
  const { id, key, source, replaces, type, bytes, contentType } = delivery
  const state = { id, key, source, replayId, replaces, cycle, reason, handler, stack }
  const { headers, truncated } = encodeHeaders(state, CAPABILITIES.headerBudgetBytes)
  const message = { id, bytes, contentType, type, headers: { ...delivery.headers, ...headers } }
  return { message, truncated }
}
