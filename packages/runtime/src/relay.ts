import { systemClock } from './clock.ts'
import type { Handler } from './consume.ts'
import type { Message } from './message.ts'
import type { OutboundEvent, Sink } from './ports.ts'

/**
 * A handler that hands every message to a sink and settles it when the sink has accepted it: an outbox
 * that feeds a broker. A crash in between sends it again, under the same id and key.
 */
export function relay(sink: Sink): Handler {
  return (message, { signal }) => sink.send([outboundOf(message)], { signal })
}

function outboundOf({ id, key, type, lane, bytes, contentType, headers }: Message): OutboundEvent {
  return {
    id,
    key,
    type: type ?? '',
    lane,
    at: systemClock.now(),
    bytes,
    contentType: contentType ?? 'application/octet-stream',
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, String(value)]),
    ),
  }
}
