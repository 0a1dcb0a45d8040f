import { onEvent, type Sink } from '@redrive/runtime'

/** An event that was sent again, or that came from the store. */
export interface Resend {
  readonly id: string
  readonly at: number
}

/** Returns the same sink under its emitter name; repeated sends are recorded. */
export function notingResends(
  name: string,
  sink: Sink,
): Sink & { readonly resends: readonly Resend[] } {
  const resends: Resend[] = []
  /** Events that were sent once or stored. */
  const known = new Set<string>()
  const stopListening = onEvent((event) => {
    if (event.type === 'emission_failed' && event.source === name) known.add(event.event.id)
  })
  const note = (id: string) => {
    if (known.has(id)) resends.push({ id, at: Date.now() })
    known.add(id)
  }
  return {
    name: sink.name,
    batch: sink.batch,
    resends,
    send(events, how) {
      for (const { id } of events) note(id)
      return sink.send(events, how)
    },
    ...(sink.healthCheck !== undefined && { healthCheck: sink.healthCheck.bind(sink) }),
    close() {
      stopListening()
      return sink.close()
    },
  }
}
