import { setTimeout as after } from 'node:timers/promises'
import type { PlannedMessage } from '../evidence/message.ts'
import type { Sending } from './world.ts'

/** The broker stored the message, rejected it, or did not respond. */
export type Accepted = 'acknowledged' | 'refused' | 'unknown'

/** 200 unconfirmed messages: the number that one lost connection may leave unknown. */
const WINDOW = 200
const TICK_MS = 20
/** 500 ms after a rejection: more messages would be rejected as well. */
const BACK_OFF_MS = 500

/**
 * Publishes every message once and records the broker's response. Messages without a response are
 * not sent again, because the checker must find out their outcome.
 */
export async function produceOnce(
  { messages, ratePerSecond, history }: Pick<Sending, 'messages' | 'ratePerSecond' | 'history'>,
  publish: (message: PlannedMessage) => Promise<Accepted>,
): Promise<void> {
  const startedAt = performance.now()
  const pending = new Set<Promise<void>>()
  let refusedAt = Number.NEGATIVE_INFINITY
  const send = async (message: PlannedMessage) => {
    const { id, kind } = message
    history.write({ what: 'attempted', id, kind })
    const accepted = await publish(message)
    if (accepted === 'refused') refusedAt = performance.now()
    if (accepted !== 'unknown') history.write({ what: accepted, id })
  }
  for (const [index, message] of messages.entries()) {
    const isTooEarly = () => {
      const now = performance.now()
      const due = ((now - startedAt) / 1_000) * ratePerSecond
      return index >= due || pending.size >= WINDOW || now - refusedAt < BACK_OFF_MS
    }
    while (isTooEarly()) await after(TICK_MS)
    const sending = send(message).finally(() => pending.delete(sending))
    pending.add(sending)
  }
  await Promise.all(pending)
}
