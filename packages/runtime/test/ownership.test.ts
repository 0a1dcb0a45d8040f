import { isRedriveError } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { AttemptContext, Inbox } from '../src/index.ts'
import type { MemoryConnection } from '@redrive/memory'
import { FakeClock } from '@redrive/testing'
import { consume } from '../src/index.ts'
import {
  delivery,
  events,
  never,
  ofType,
  PLAIN,
  ScriptedTransport,
  scripted,
  untilAborted,
  world,
} from './fixtures.ts'

/** A handler that a test ends by hand, and what it saw. */
function controlled() {
  const runs: {
    readonly id: string
    readonly context: AttemptContext
    end: () => void
    fail: () => void
  }[] = []
  const handler = ({ id }: { readonly id: string }, context: AttemptContext) =>
    new Promise<void>((resolve, reject) => {
      runs.push({ id, context, end: resolve, fail: () => reject(new Error('no')) })
    })
  return { runs, handler }
}

/** A schema whose check takes until the promise is fulfilled. */
const schemaAfter = (ready: Promise<unknown>): StandardSchemaV1 => ({
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: async (value) => ({ value: await ready.then(() => value) }),
  },
})

/** An inbox that begins its transaction when the promise is fulfilled. */
const inboxAfter = (ready: Promise<unknown>): Inbox<undefined> => ({
  async handle(_entry, work) {
    await ready
    await work(undefined)
    return 'handled'
  },
})

const RETRY = { retry: { backoff: { kind: 'fixed', delay: '10ms' } } } as const

describe('a delivery that the broker takes back while its handler runs', () => {
  it('fires the signal immediately, and this process neither retries nor settles it', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    await start(handler, RETRY)
    const [one, other] = [delivery('a'), delivery('b')]
    transport.deliver(one, other)
    await clock.settle()
    const { signal } = runs[0]?.context ?? {}
    expect(signal?.aborted).toBe(false)
    transport.receiver?.lost(one)
    await clock.settle()
    expect(isRedriveError(signal?.reason, 'DELIVERY_LOST')).toBe(true)
    expect(runs[1]?.context.signal.aborted).toBe(false)
    runs[0]?.fail()
    runs[1]?.end()
    await clock.advance('1m')
    expect(runs.map(({ id }) => id)).toEqual(['a', 'b'])
    expect(transport.log.filter((line) => line.endsWith(' a'))).toEqual([])
    expect(transport.log).toContain('settle b')
  })

  it.each([
    ['its body is decoded', (ready: Promise<unknown>) => ({ decode: () => ready })],
    ['its schema is checked', (ready: Promise<unknown>) => ({ schema: schemaAfter(ready) })],
    ['its inbox waits', (ready: Promise<unknown>) => ({ inbox: inboxAfter(ready) })],
  ])('does not reach its handler when it is lost while %s', async (_, optionsOf) => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const ready = Promise.withResolvers<unknown>()
    await start(handler, optionsOf(ready.promise))
    const lost = delivery('a')
    transport.deliver(lost)
    await clock.settle()
    transport.receiver?.lost(lost)
    ready.resolve({})
    await clock.settle()
    expect(runs).toEqual([])
    expect(transport.decisions).toEqual([])
  })

  it('is not settled when its handler ends with success', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const consumer = await start(handler)
    const lost = delivery('a')
    transport.deliver(lost)
    await clock.settle()
    transport.receiver?.lost(lost)
    await clock.settle()
    runs[0]?.end()
    await clock.settle()
    expect(transport.decisions).toEqual([])
    expect(consumer.stats()).toMatchObject({ running: 0, hung: 0, handled: 0 })
  })

  it('does not run again here before its earlier run has ended', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const consumer = await start(handler)
    const first = delivery('a')
    transport.deliver(first)
    await clock.settle()
    transport.receiver?.lost(first)
    transport.deliver(delivery('b'))
    await clock.settle()
    transport.deliver(delivery('a'))
    await clock.settle()
    expect(runs.map(({ id }) => id)).toEqual(['a', 'b'])
    expect(consumer.stats()).toMatchObject({ running: 2, waiting: 1 })
    runs[0]?.end()
    await clock.settle()
    expect(runs.map(({ id }) => id)).toEqual(['a', 'b', 'a'])
    expect(consumer.stats()).toMatchObject({ running: 2, waiting: 0 })
  })

  it('does not run again here when the broker returns it in the same turn', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    await start(handler)
    const first = delivery('a')
    transport.deliver(first)
    await clock.settle()
    transport.receiver?.lost(first)
    transport.deliver(delivery('a'))
    await clock.settle()
    expect(runs).toHaveLength(1)
    expect(isRedriveError(runs[0]?.context.signal.reason, 'DELIVERY_LOST')).toBe(true)
    runs[0]?.end()
    await clock.settle()
    expect(runs).toHaveLength(2)
  })

  it('is forgotten while it waits for its earlier run', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    await start(handler)
    const [first, second] = [delivery('a'), delivery('a')]
    transport.deliver(first)
    await clock.settle()
    transport.receiver?.lost(first)
    await clock.settle()
    transport.deliver(second)
    transport.receiver?.lost(second)
    await clock.settle()
    runs[0]?.end()
    await clock.advance('1m')
    expect(runs).toHaveLength(1)
    expect(transport.decisions).toEqual([])
  })

  it('is neither retried nor settled when it is lost in the grace period', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const consumer = await start(handler, { ...RETRY, timeout: '800ms' })
    const late = delivery('a')
    transport.deliver(late)
    await clock.advance('2s')
    expect(runs[0]?.context.signal.aborted).toBe(true)
    transport.receiver?.lost(late)
    await clock.advance('1m')
    expect(consumer.stats()).toMatchObject({ running: 0, hung: 1 })
    expect(transport.decisions).toEqual([])
    expect(runs).toHaveLength(1)
  })

  it('is no crash: a message that was only lost does not become a suspect', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const seen = events()
    await start(handler, { timeout: '800ms', poison: { suspectDeliveries: 2 } })
    const loses = async (deliveryCount: number, afterMs: number) => {
      const one = delivery('a', { deliveryCount })
      transport.deliver(one)
      await clock.advance(afterMs)
      transport.receiver?.lost(one)
      await clock.settle()
      runs.at(-1)?.end()
      await clock.settle()
    }
    await loses(1, 0)
    await loses(2, 2_000)
    await loses(3, 0)
    expect(runs).toHaveLength(3)
    expect(ofType(seen, 'consumer_paused')).toEqual([])
  })

  it('stays a suspect when it is lost while it is returned: the broker may not count that', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const seen = events()
    const consumer = await start(handler, { poison: { suspectDeliveries: 3 } })
    transport.result = () => new Promise(() => undefined)
    consumer.pause()
    const first = delivery('a', { deliveryCount: 3 })
    transport.deliver(first)
    await clock.settle()
    expect(transport.log.at(-1)).toBe('pause a')
    transport.receiver?.lost(first)
    await clock.settle()
    consumer.resume()
    transport.deliver(delivery('a', { deliveryCount: 3 }))
    await clock.settle()
    expect(ofType(seen, 'consumer_paused').map(({ reason }) => reason)).toEqual([
      'requested',
      'trial',
    ])
    expect(runs).toEqual([])
  })

  it('is counted from the beginning when it is retried', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const seen = events()
    const retry = { backoff: { kind: 'fixed', delay: '1m' } } as const
    await start(handler, { retry, poison: { suspectDeliveries: 2 } })
    const first = delivery('a')
    transport.deliver(first)
    await clock.settle()
    transport.receiver?.lost(first)
    await clock.settle()
    runs[0]?.end()
    transport.deliver(delivery('a', { deliveryCount: 2 }))
    await clock.settle()
    runs[1]?.fail()
    await clock.settle()
    expect(transport.log.at(-1)).toBe('retryAt a')
    transport.deliver(delivery('a', { deliveryCount: 2 }))
    await clock.settle()
    expect(ofType(seen, 'consumer_paused').map(({ reason }) => reason)).toEqual(['trial'])
  })

  it('waits for the last of two copies that run', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    await start(handler, { timeout: '800ms' })
    transport.deliver(delivery('a'), delivery('a'))
    await clock.advance('2s')
    runs[0]?.end()
    await clock.settle()
    transport.deliver(delivery('a'))
    await clock.settle()
    expect(runs).toHaveLength(2)
    runs[1]?.end()
    await clock.settle()
    expect(runs).toHaveLength(3)
  })

  it('costs the same for each of ten thousand', async () => {
    const { clock, transport, start } = scripted()
    await start(never, { concurrency: 10_000 })
    const all = Array.from({ length: 10_000 }, (_, index) => delivery(`m${index}`))
    transport.deliver(...all)
    await clock.settle()
    // Processor time: next to other work, the real time is much longer.
    const before = process.cpuUsage()
    for (const one of all) transport.receiver?.lost(one)
    await clock.settle()
    const { user } = process.cpuUsage(before)
    expect(user / 1_000).toBeLessThan(2_000)
  })
})

describe('a handler that does not end at its timeout', () => {
  it('keeps its slot during the grace period', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const consumer = await start(handler, { ...RETRY, timeout: '800ms', concurrency: 1 })
    transport.deliver(delivery('a'), delivery('b'))
    await clock.advance('3s')
    expect(runs.map(({ id }) => id)).toEqual(['a'])
    expect(consumer.stats()).toMatchObject({ running: 1, hung: 0, waiting: 1 })
    runs[0]?.fail()
    await clock.settle()
    expect(runs.map(({ id }) => id)).toEqual(['a', 'b'])
  })

  it('is settled when it succeeds within the grace period', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    await start(handler, { timeout: '800ms' })
    transport.deliver(delivery('a'))
    await clock.advance('3s')
    expect(runs[0]?.context.signal.aborted).toBe(true)
    runs[0]?.end()
    await clock.settle()
    expect(transport.log).toContain('settle a')
  })

  it('fails with the timeout, whatever it throws', async () => {
    const { clock, transport, start } = scripted()
    await start((_, { signal }) => untilAborted(signal), {
      timeout: '800ms',
      retry: { backoff: { kind: 'fixed', delay: '1h' } },
    })
    transport.deliver(delivery('a'))
    await clock.advance('1s')
    expect(transport.decisions[0]?.decision).toMatchObject({
      kind: 'retryAt',
      failure: { class: 'transient', code: 'ATTEMPT_TIMEOUT', timedOut: true },
    })
  })

  it('is hung after the grace period: its message is decided, and it still counts against the concurrency', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const seen = events()
    const consumer = await start(handler, {
      timeout: '800ms',
      grace: '2s',
      concurrency: 2,
      retry: { backoff: { kind: 'fixed', delay: '1h' } },
    })
    transport.deliver(delivery('a'))
    await clock.advance('2s')
    expect(transport.decisions).toEqual([])
    await clock.advance('2s')
    expect(transport.log).toContain('retryAt a')
    expect(ofType(seen, 'handler_hung')).toMatchObject([{ deliveryId: 'a', hung: 1 }])
    expect(consumer.stats()).toMatchObject({ running: 0, hung: 1, concurrencyLimit: 1 })
    runs[0]?.end()
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ running: 0, hung: 0, concurrencyLimit: 2 })
    expect(transport.log).not.toContain('settle a')
  })

  it('pauses the consumer when hung handlers hold every slot, until one of them ends', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const seen = events()
    await start(handler, {
      timeout: '800ms',
      grace: '1s',
      concurrency: 2,
      retry: { backoff: { kind: 'fixed', delay: '1h' } },
    })
    transport.deliver(delivery('a'), delivery('b'))
    await clock.advance('5s')
    expect(ofType(seen, 'consumer_paused')).toMatchObject([{ reason: 'handlers_hung' }])
    transport.deliver(delivery('c'))
    await clock.advance('1m')
    expect(runs.map(({ id }) => id)).toEqual(['a', 'b'])
    runs[0]?.end()
    await clock.settle()
    expect(ofType(seen, 'consumer_resumed')).toHaveLength(1)
  })

  it('does not run again while one of its copies is hung, when the other copy has ended', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    await start(handler, { timeout: '800ms', grace: '1s' })
    transport.deliver(delivery('a'), delivery('a'))
    await clock.advance('3s')
    runs[1]?.end()
    await clock.settle()
    transport.deliver(delivery('a'))
    await clock.settle()
    expect(runs).toHaveLength(2)
    runs[0]?.end()
    await clock.settle()
    transport.deliver(delivery('a'))
    await clock.settle()
    expect(runs).toHaveLength(3)
  })

  it('waits for each of two copies in their grace period', async () => {
    const { clock, transport, start } = scripted()
    const { runs, handler } = controlled()
    const consumer = await start(handler, { timeout: '800ms' })
    transport.deliver(delivery('a'), delivery('a'))
    await clock.advance('2s')
    transport.deliver(delivery('a'))
    await clock.settle()
    runs[1]?.end()
    await clock.settle()
    expect(runs).toHaveLength(2)
    expect(consumer.stats().waiting).toBe(1)
    runs[0]?.end()
    await clock.settle()
    expect(runs).toHaveLength(3)
  })

  it('never runs twice at the same time: its retries wait, and it is given up without another run', async () => {
    const { clock, transport, start } = scripted({ delay: { kind: 'none' } })
    const { runs, handler } = controlled()
    await start(handler, {
      ...RETRY,
      timeout: '800ms',
      grace: '1s',
      outage: {},
      retry: { ...RETRY.retry, unproven: { runs: 6, maxAge: '1m' } },
    })
    transport.deliver(delivery('a'))
    await clock.advance('10m')
    expect(runs).toHaveLength(1)
    expect(transport.decisions.at(-1)?.decision).toMatchObject({
      kind: 'deadLetter',
      reason: 'unproven',
      cycle: { runs: 1 },
    })
  })
})

describe('a consumer that stops', () => {
  it('settles a handler that ends with success when its signal fires', async () => {
    const { clock, transport, start } = scripted()
    const consumer = await start(
      (_, { signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => resolve())
        }),
    )
    transport.deliver(delivery('a'))
    await clock.settle()
    const stopped = consumer.stop({ drain: '10s' })
    await clock.advance('10s')
    await stopped
    expect(transport.log.slice(-2)).toEqual(['settle a', 'close'])
  })

  it('returns the message of a handler that does not end, and reports it as hung', async () => {
    const { clock, transport, start } = scripted()
    const seen = events()
    const consumer = await start(never)
    transport.deliver(delivery('a'))
    await clock.settle()
    const stopped = consumer.stop({ drain: '10s' })
    await clock.advance('10s')
    await stopped
    expect(transport.log.slice(-2)).toEqual(['pause a', 'close'])
    expect(ofType(seen, 'handler_hung')).toMatchObject([{ deliveryId: 'a', hung: 1 }])
  })

  it('reports no handler that ends when its signal fires', async () => {
    const { clock, transport, start } = scripted()
    const seen = events()
    const consumer = await start((_, { signal }) => untilAborted(signal))
    transport.deliver(delivery('a'))
    await clock.settle()
    const stopped = consumer.stop({ drain: '10s' })
    await clock.advance('10s')
    await stopped
    expect(ofType(seen, 'handler_hung')).toEqual([])
  })
})

describe('two consumers of one queue in one process', () => {
  /** A world, and a handler that counts the runs that are alive together. */
  function observed() {
    const { runs, handler } = controlled()
    const connections: MemoryConnection[] = []
    const between = (connection: MemoryConnection) => {
      connections.push(connection)
      return connection
    }
    return { ...world({ between }), runs, handler, connections }
  }

  it('never run a message while its earlier run is hung in the other one', async () => {
    const { clock, send, start, runs, handler } = observed()
    const options = { ...RETRY, timeout: '800ms', grace: '1s' } as const
    await start(handler, options)
    await start(handler, options)
    send({}, { id: 'a' })
    await clock.advance('10s')
    expect(runs).toHaveLength(1)
    runs[0]?.end()
    await clock.advance('1h')
    expect(runs).toHaveLength(2)
  })

  it('run a lost message when its earlier run in the other one has ended', async () => {
    const { clock, send, start, runs, handler, connections, broker } = observed()
    await start(handler)
    send({}, { id: 'a' })
    await start(handler)
    await clock.settle()
    connections[0]?.close()
    await clock.settle()
    expect(runs).toHaveLength(1)
    runs[0]?.end()
    await clock.settle()
    expect(runs).toHaveLength(2)
    expect(broker.depth('orders')).toBe(1)
  })

  it('retry a lost message later when its earlier run hangs in the other one', async () => {
    const { clock, send, start, runs, handler, connections } = observed()
    const first = await start(handler, { timeout: '10s', grace: '1s' })
    send({}, { id: 'a' })
    const second = await start(handler)
    await clock.settle()
    connections[0]?.close()
    await clock.advance('5s')
    expect(second.stats()).toMatchObject({ running: 0, waiting: 1 })
    await clock.advance('10s')
    expect(first.stats().hung).toBe(1)
    expect(second.stats()).toMatchObject({ running: 0, waiting: 0 })
    expect(runs).toHaveLength(1)
  })

  it('do not run a message whose handler outlives the stop of its consumer', async () => {
    const { clock, send, start, runs, handler } = observed()
    const first = await start(handler)
    send({}, { id: 'a' })
    send({}, { id: 'b' })
    await clock.settle()
    const stopped = first.stop({ drain: '1s' })
    await clock.advance('1s')
    await stopped
    await start(handler, { ...RETRY, retry: { ...RETRY.retry, unproven: { runs: 1_000 } } })
    await clock.advance('5s')
    expect(runs.map(({ id }) => id)).toEqual(['a', 'b'])
    runs[0]?.end()
    await clock.advance('1h')
    expect(runs.map(({ id }) => id)).toEqual(['a', 'b', 'a'])
  })

  it('do not wait for each other when their transports are of different groups', async () => {
    const clock = new FakeClock()
    const { runs, handler } = controlled()
    for (const name of ['one', 'two']) {
      const transport = Object.assign(new ScriptedTransport(), { group: { name } })
      await consume(transport, handler, { ...PLAIN, logger: 'off', timeout: '800ms', clock })
      transport.deliver(delivery('a'))
      await clock.advance('3s')
    }
    expect(runs).toHaveLength(2)
  })

  it('share the runs of a group with a name, also after all of them have stopped', async () => {
    const clock = new FakeClock()
    const { runs, handler } = controlled()
    const startNext = async () => {
      const transport = Object.assign(new ScriptedTransport(), { group: { name: 'kept' } })
      const consumer = await consume(transport, handler, { ...PLAIN, logger: 'off', clock })
      transport.deliver(delivery('a'))
      await clock.settle()
      const stopped = consumer.stop({ drain: '1s' })
      await clock.advance('1s')
      await stopped
    }
    await startNext()
    await startNext()
    expect(runs).toHaveLength(1)
    runs[0]?.end()
    await clock.settle()
    await startNext()
    expect(runs).toHaveLength(2)
  })
})
