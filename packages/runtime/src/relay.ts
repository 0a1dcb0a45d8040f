import { readOptions } from '@redrive/core/internal'
import { SINK } from './checks.ts'
import { systemClock } from './clock.ts'
import type { Handler } from './consume.ts'
import type { Message } from './message.ts'
import type { OutboundEvent, Sink } from './ports/sink.ts'

/**
 * Returns a handler that sends every message to a sink and settles it when the sink has accepted it. Use
 * it for an outbox that feeds a broker. After a crash in between it sends again, under the same id and key.
 */
export function relay(sink: Sink): Handler {
  readOptions('relay()', { sink }, (options) => options.required('sink', SINK))
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
