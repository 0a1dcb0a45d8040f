import { describe, expect, it } from 'vitest'
import { type OutboundEvent, relay, type Sink } from '../src/index.ts'
import { unreachable, world } from './fixtures.ts'

/** A destination that accepts events after the given number of refusals. */
function sinkAfter(refusals: number): Sink & { readonly accepted: OutboundEvent[] } {
  const accepted: OutboundEvent[] = []
  let left = refusals
  return {
    name: 'recording',
    batch: 1,
    accepted,
    send(events) {
      left -= 1
      if (left >= 0) return Promise.reject(unreachable())
      accepted.push(...events)
      return Promise.resolve()
    },
    healthCheck: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
}

describe('a relay', () => {
  it('passes on id, key, type, lane, bytes and headers', async () => {
    const { send, start, clock, backlog } = world()
    const sink = sinkAfter(0)
    await start(relay(sink))
    send(new Uint8Array([0, 255]), {
      id: 'a',
      type: 'order.placed',
      lane: 'customer-1',
      contentType: 'application/octet-stream',
      headers: { 'redrive-key': 'order-1', traceparent: '00-1' },
    })
    await clock.settle()
    expect(sink.accepted).toMatchObject([
      {
        id: 'a',
        key: 'order-1',
        type: 'order.placed',
        lane: 'customer-1',
        bytes: new Uint8Array([0, 255]),
        contentType: 'application/octet-stream',
        headers: { traceparent: '00-1' },
      },
    ])
    expect(backlog()).toBe(0)
  })

  it('settles only what the sink has accepted, and sends again under the same id', async () => {
    const { send, start, clock, backlog } = world()
    const sink = sinkAfter(1)
    await start(relay(sink), { retry: { backoff: { kind: 'fixed', delay: '2s' } } })
    send({ total: 7 }, { id: 'a' })
    await clock.advance('1s')
    expect(sink.accepted).toEqual([])
    expect(backlog()).toBe(1)
    await clock.advance('5s')
    expect(sink.accepted).toMatchObject([{ id: 'a', key: 'a' }])
    expect(backlog()).toBe(0)
  })
})
