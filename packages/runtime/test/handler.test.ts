import { isRedriveError } from '@redrive/core'
import { memoryInbox, type MemoryTransaction } from '@redrive/testing'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { describe, expect, it } from 'vitest'
import type { AttemptContext, Inbox, InboxEntry, Message } from '../src/index.ts'
import { events, ofType, revoked, unreachable, untilAborted, world } from './fixtures.ts'

describe('a handler that returns a promise with its own then', () => {
  const withThen = (then: (done: () => void) => void) =>
    // oxlint-disable-next-line unicorn/no-thenable -- a promise with an own `then` is what these tests are about
    Object.assign(Promise.resolve(), { then }) as Promise<void>

  it('fails when that throws, and keeps its slot free for the next message', async () => {
    const { send, start, clock } = world()
    const consumer = await start(
      () =>
        withThen(() => {
          throw new Error('no connection')
        }),
      { concurrency: 1, retry: { attempts: 1 } },
    )
    send({})
    send({})
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ running: 0, failed: 2 })
  })

  it('ends once when that calls back twice and throws', async () => {
    const { send, start, clock } = world()
    const consumer = await start(() =>
      withThen((done) => {
        done()
        done()
        throw new Error('late')
      }),
    )
    send({})
    await clock.settle()
    expect(consumer.stats()).toMatchObject({ running: 0, handled: 1, failed: 0 })
  })
})

describe('a handler', () => {
  it('gets the message as it was sent', async () => {
    const { send, start, clock, backlog } = world()
    const seen: Message[] = []
    await start((message) => void seen.push(message))
    send(
      { total: 7 },
      { id: 'a', type: 'placed', lane: 'l', headers: { 'redrive-key': 'k', x: 1 } },
    )
    await clock.settle()
    const [message] = seen
    expect(message).toMatchObject({
      id: 'a',
      key: 'k',
      type: 'placed',
      source: 'orders',
      lane: 'l',
    })
    expect(message?.body).toEqual({ total: 7 })
    expect(new TextDecoder().decode(message?.bytes)).toBe('{"total":7}')
    expect({ ...message?.headers }).toEqual({ x: 1 })
    expect(message?.contentType).toBeUndefined()
    expect(backlog()).toBe(0)
  })

  it('gets the attempt number and the earlier failures', async () => {
    const { send, start, clock } = world()
    const seen: Pick<AttemptContext, 'attempt' | 'cycle' | 'replayId' | 'history'>[] = []
    await start(
      (_, { attempt, cycle, replayId, history }) => {
        seen.push({ attempt, cycle, replayId, history })
        if (attempt < 3) throw unreachable()
      },
      { retry: { backoff: { kind: 'fixed', delay: '2s' } } },
    )
    send({})
    await clock.advance('10s')
    expect(seen.map(({ attempt, cycle, history }) => [attempt, cycle, history.length])).toEqual([
      [1, 1, 0],
      [2, 1, 1],
      [3, 1, 2],
    ])
    expect(seen[2]?.history).toMatchObject([
      { number: 1, class: 'transient', code: 'ECONNREFUSED' },
      { number: 2, class: 'transient', code: 'ECONNREFUSED' },
    ])
    expect(seen[0]?.replayId).toBeUndefined()
  })

  it('gets the failures that do not count, with the time that the message waited', async () => {
    const { send, start, clock } = world()
    const seen: AttemptContext['history'][] = []
    await start(
      (_, { history, runs }) => {
        seen.push(history)
        if (runs < 2) throw unreachable()
      },
      { outage: {}, retry: { unproven: {}, backoff: { kind: 'fixed', delay: '2s' } } },
    )
    send({})
    await clock.advance('10s')
    expect(seen[2]).toMatchObject([
      { number: 1, waitedMs: 0, type: 'Error', counted: true },
      // No other message passed or failed in this time, so the cause is not proven.
      { number: 2, waitedMs: 2_000, type: 'Error', counted: false },
    ])
    expect(seen[2]?.[1]?.at).toBe((seen[2]?.[0]?.at ?? 0) + 2_000)
  })

  it('is named in its dead letters, with the type of the error', async () => {
    class PriceMismatch extends Error {}
    const { send, start, clock, drain } = world()
    const handler = () => {
      throw new PriceMismatch('total is 7, lines are 8')
    }
    await start(handler, { name: 'charge', retry: { attempts: 1 } })
    send({})
    await clock.settle()
    const [deadLetter] = await drain()
    expect(deadLetter?.handler).toBe('charge')
    expect(deadLetter?.delivery.cycle).toMatchObject({
      attempts: 1,
      runs: 1,
      history: [{ number: 1, type: 'PriceMismatch', message: 'total is 7, lines are 8' }],
    })
  })

  it('may be synchronous and may throw', async () => {
    const { send, start, clock, drain } = world()
    await start(
      () => {
        throw new Error('no')
      },
      { retry: { attempts: 1 } },
    )
    send({})
    await clock.settle()
    expect(await drain()).toMatchObject([{ reason: 'attempts_exhausted', class: 'unknown' }])
  })
})

describe('decoding', () => {
  const decoded = async (body: Uint8Array, contentType?: string) => {
    const { send, start, clock, drain } = world()
    const bodies: unknown[] = []
    await start(({ body: value }) => void bodies.push(value))
    send(body, contentType === undefined ? {} : { contentType })
    await clock.settle()
    return { bodies, deadLetters: await drain() }
  }
  const text = (value: string) => new TextEncoder().encode(value)

  it('reads JSON unless the content type is different', async () => {
    expect((await decoded(text('{"a":1}'))).bodies).toEqual([{ a: 1 }])
    expect((await decoded(text('[1]'), 'application/vnd.x+json')).bodies).toEqual([[1]])
    expect((await decoded(text('{"a"'), 'text/plain')).bodies).toEqual(['{"a"'])
    const bytes = Uint8Array.from([0xff, 0])
    expect((await decoded(bytes, 'application/octet-stream')).bodies).toEqual([bytes])
  })

  it.each([
    ['broken JSON', text('{"a"')],
    ['bytes that are not UTF-8', Uint8Array.from([0x22, 0xff, 0x22])],
    ['an empty body', new Uint8Array()],
  ])('gives up immediately on %s, as a schema failure', async (_, body) => {
    const { bodies, deadLetters } = await decoded(body)
    expect(bodies).toEqual([])
    expect(deadLetters).toMatchObject([{ class: 'schema', reason: 'terminal' }])
    expect(deadLetters[0]?.delivery.bytes).toEqual(body)
    expect(deadLetters[0]?.delivery.cycle.attempts).toBe(1)
  })

  it.each([
    ['an object without a prototype', () => Object.create(null) as unknown],
    ['a symbol', () => Symbol('unreadable')],
    ['a Proxy that throws', revoked],
    [
      'an error whose message throws',
      () =>
        Object.defineProperty(new Error(), 'message', {
          get: () => {
            throw new Error('no message')
          },
        }),
    ],
  ])('takes a decoder that throws %s for a body that cannot be read', async (_, thrown) => {
    const { send, start, clock, drain } = world()
    let runs = 0
    await start(() => expect.unreachable(), {
      decode: () => {
        runs += 1
        throw thrown()
      },
    })
    send({})
    await clock.advance('5m')
    expect(await drain()).toMatchObject([{ class: 'schema', reason: 'terminal' }])
    expect(runs).toBe(1)
  })

  it.each([
    ['Application/JSON', '{"a":1}', { a: 1 }],
    ['application/vnd.X+JSON', '[1]', [1]],
    ['TEXT/Plain; charset=UTF-8', '{"a"', '{"a"'],
  ])('reads %s as in lower case', async (contentType, body, value) => {
    expect((await decoded(text(body), contentType)).bodies).toEqual([value])
  })

  it('does not decode a body that the handler does not read', async () => {
    const { send, start, clock } = world()
    const handled: number[] = []
    await start(({ bytes }) => void handled.push(bytes.length))
    send(new TextEncoder().encode('not json'))
    await clock.settle()
    expect(handled).toEqual([8])
  })

  it('waits for an asynchronous decoder', async () => {
    const { send, start, clock, drain } = world()
    const seen: unknown[] = []
    await start(({ body }) => void seen.push(body), {
      decode: async (bytes) => {
        if (bytes.length === 0) throw new Error('no such schema')
        return `${bytes.length} bytes`
      },
    })
    send(new Uint8Array(3))
    send(new Uint8Array(0), { id: 'empty' })
    await clock.settle()
    expect(seen).toEqual(['3 bytes'])
    expect(await drain()).toMatchObject([{ delivery: { id: 'empty' }, class: 'schema' }])
  })

  it('decodes once, with the decoder of the user', async () => {
    const { send, start, clock } = world()
    let decodes = 0
    const seen: unknown[] = []
    await start(({ body, id }, _) => void seen.push(body, body, id), {
      decode: (bytes, { id }) => {
        decodes += 1
        return `${id}:${bytes.length}`
      },
    })
    send('abc', { id: 'm' })
    await clock.settle()
    expect(seen).toEqual(['m:5', 'm:5', 'm'])
    expect(decodes).toBe(1)
  })
})

/** A handwritten Standard Schema: an object with a positive total, which it doubles. */
function schema(isAsync: boolean): StandardSchemaV1<unknown, { total: number }> {
  const check = (value: unknown): StandardSchemaV1.Result<{ total: number }> => {
    const total = (value as { total?: unknown } | null)?.total
    if (typeof total === 'number' && total > 0) return { value: { total: total * 2 } }
    return {
      issues: [
        { message: 'expected a positive number', path: ['order', { key: 'lines' }, 0, 'total'] },
        { message: 'expected more' },
      ],
    }
  }
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) => (isAsync ? Promise.resolve(check(value)) : check(value)),
    },
  }
}

describe.each([
  ['synchronous', false],
  ['asynchronous', true],
])('a %s schema', (_, isAsync) => {
  it('passes the validated body to the handler', async () => {
    const { send, start, clock, backlog } = world()
    const totals: number[] = []
    await start(({ body }) => void totals.push(body.total), { schema: schema(isAsync) })
    send({ total: 4 })
    await clock.settle()
    expect(totals).toEqual([8])
    expect(backlog()).toBe(0)
  })

  it('gives up immediately on a rejected body, with the location', async () => {
    const { send, start, clock, drain } = world()
    await start(() => expect.unreachable(), { schema: schema(isAsync) })
    send({ total: 0 })
    await clock.settle()
    const [deadLetter] = await drain()
    expect(deadLetter).toMatchObject({ class: 'schema', reason: 'terminal' })
    const [record] = deadLetter?.delivery.cycle.history ?? []
    expect(record?.code).toBe('PAYLOAD_INVALID')
    expect(record?.message).toContain('expected a positive number at /order/lines/0/total')
    expect(record?.message).toContain('expected more at /')
  })

  it('reports a body that cannot be decoded as a schema failure too', async () => {
    const { send, start, clock, drain } = world()
    await start(() => expect.unreachable(), { schema: schema(isAsync) })
    send(new TextEncoder().encode('{'))
    await clock.settle()
    expect(await drain()).toMatchObject([{ class: 'schema', reason: 'terminal' }])
  })

  it('runs inside the inbox as well', async () => {
    const { send, start, clock, drain } = world()
    const inbox = memoryInbox()
    await start<{ total: number }, MemoryTransaction>(() => expect.unreachable(), {
      schema: schema(isAsync),
      inbox,
    })
    send({ total: 0 })
    await clock.settle()
    expect(await drain()).toMatchObject([{ class: 'schema' }])
    expect(inbox.count).toBe(0)
  })
})

describe('an inbox', () => {
  const message = (id: string, key: string) => ({ id, headers: { 'redrive-key': key } })

  it('applies the effects of a duplicate once, and reports it', async () => {
    const { send, start, clock, backlog, deadLetters } = world()
    const seen = events()
    const inbox = memoryInbox()
    const effects: string[] = []
    await start<unknown, MemoryTransaction>(
      ({ id }, { tx }) => tx.onCommit(() => void effects.push(id)),
      { inbox },
    )
    send({ a: 1 }, message('first', 'order-1'))
    await clock.settle()
    send({ a: 1 }, message('second', 'order-1'))
    await clock.settle()
    expect(effects).toEqual(['first'])
    expect(ofType(seen, 'enacted').map(({ decision }) => decision.reason)).toEqual([
      'handled',
      'already_handled',
    ])
    expect([backlog(), deadLetters()]).toEqual([0, 0])
    expect(inbox.has('orders', 'order-1')).toBe(true)
  })

  it('dead-letters the same key with different content, with the reason', async () => {
    const { send, start, clock, drain } = world()
    await start(() => undefined, { inbox: memoryInbox(), name: 'billing' })
    send({ a: 1 }, message('first', 'order-1'))
    await clock.settle()
    send({ a: 2 }, message('second', 'order-1'))
    await clock.settle()
    const [deadLetter] = await drain()
    expect(deadLetter?.delivery.id).toBe('second')
    expect(deadLetter?.class).toBe('integration')
    expect(deadLetter?.delivery.cycle.history[0]?.code).toBe('KEY_CONFLICT')
  })

  it('does not record a failed attempt, so that the next one takes effect', async () => {
    const { send, start, clock } = world()
    const inbox = memoryInbox()
    const effects: number[] = []
    await start<unknown, MemoryTransaction>(
      (_, { tx, attempt }) => {
        tx.onCommit(() => void effects.push(attempt))
        if (attempt === 1) throw unreachable()
      },
      { inbox, retry: { backoff: { kind: 'fixed', delay: '5s' } } },
    )
    send({})
    await clock.settle()
    expect(inbox.count).toBe(0)
    await clock.advance('5s')
    expect(effects).toEqual([2])
  })

  it.each([
    ['the edited one', 'the original'],
    ['the original', 'the edited one'],
  ])('lets %s take effect, and then not %s', async (...order) => {
    const { send, start, clock, backlog, deadLetters } = world()
    const seen = events()
    const effects: string[] = []
    await start<unknown, MemoryTransaction>(
      ({ id }, { tx }) => tx.onCommit(() => void effects.push(id)),
      { inbox: memoryInbox() },
    )
    const edited = { 'redrive-key': 'order-1/edited', 'redrive-replaces': 'order-1' }
    for (const id of order) {
      const headers = id === 'the original' ? { 'redrive-key': 'order-1' } : edited
      send({ is: id }, { id, headers })
      await clock.settle()
    }
    expect(effects).toEqual([order[0]])
    expect(ofType(seen, 'enacted').map(({ decision }) => decision.reason)).toEqual([
      'handled',
      'already_handled',
    ])
    expect([backlog(), deadLetters()]).toEqual([0, 0])
  })

  it('gets the key of the replaced message, and none for a message without one', async () => {
    const { send, start, clock } = world()
    const entries: InboxEntry[] = []
    const inbox: Inbox = {
      handle: (entry) => {
        entries.push(entry)
        return Promise.resolve('handled')
      },
    }
    await start<unknown, unknown>(() => undefined, { inbox })
    send({}, { id: 'a', headers: { 'redrive-replaces': 'b' } })
    send({}, { id: 'c' })
    await clock.settle()
    expect(entries.map((entry) => ['replaces' in entry, entry.replaces])).toEqual([
      [true, 'b'],
      [false, undefined],
    ])
  })

  it('is separated by the name of the consumer', async () => {
    const { send, start, clock } = world()
    const inbox = memoryInbox()
    await start(() => undefined, { inbox, name: 'billing' })
    send({}, { id: 'a' })
    await clock.settle()
    expect([inbox.has('billing', 'a'), inbox.has('orders', 'a')]).toEqual([true, false])
  })
})

describe('an attempt that exceeds its timeout', () => {
  it('is aborted not before its timeout and soon after, and counts as a failure', async () => {
    const { send, start, clock } = world()
    const aborted: { readonly afterMs: number; readonly reason: unknown }[] = []
    const began: number[] = []
    await start(
      (_, { signal, attempt }) => {
        if (attempt > 1) return undefined
        began.push(clock.now())
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted.push({ afterMs: clock.now() - (began[0] ?? 0), reason: signal.reason })
            reject(signal.reason as Error)
          })
        })
      },
      { timeout: '8s', retry: { backoff: { kind: 'fixed', delay: '5s' } } },
    )
    send({})
    await clock.advance('7999ms')
    expect(aborted).toEqual([])
    await clock.advance('2s')
    expect(aborted.length).toBe(1)
    expect(aborted[0]?.afterMs).toBeGreaterThanOrEqual(8_000)
    expect(aborted[0]?.afterMs).toBeLessThanOrEqual(9_000)
    expect(isRedriveError(aborted[0]?.reason, 'ATTEMPT_TIMEOUT')).toBe(true)
  })

  it('is a transient failure in the history, and the next attempt runs', async () => {
    const { send, start, clock, backlog } = world()
    const histories: unknown[] = []
    await start(
      (_, { attempt, history, signal }) => {
        if (attempt === 1) return untilAborted(signal)
        histories.push(history)
        return undefined
      },
      { timeout: '1s', retry: { backoff: { kind: 'fixed', delay: '5s' } } },
    )
    send({})
    await clock.advance('10s')
    expect(histories).toMatchObject([[{ class: 'transient', code: 'ATTEMPT_TIMEOUT' }]])
    expect(backlog()).toBe(0)
  })

  it('is decided after the grace period: a later end of its handler changes nothing', async () => {
    const { send, start, clock } = world()
    const seen = events()
    const finish: (() => void)[] = []
    await start(() => new Promise<void>((resolve) => finish.push(resolve)), {
      timeout: '1s',
      retry: { backoff: { kind: 'fixed', delay: '1h' } },
    })
    send({})
    await clock.advance('7s')
    for (const resolve of finish) resolve()
    await clock.settle()
    expect(ofType(seen, 'enacted').map(({ decision }) => decision.kind)).toEqual(['retryAt'])
  })

  it('gets a fired signal, when it reads the signal only then', async () => {
    const { send, start, clock } = world()
    const contexts: AttemptContext[] = []
    await start(
      (_, context) => {
        contexts.push(context)
        return new Promise(() => undefined)
      },
      { timeout: '1s', retry: { backoff: { kind: 'fixed', delay: '1h' } } },
    )
    send({})
    await clock.advance('3s')
    const signal = contexts[0]?.signal
    expect(signal?.aborted).toBe(true)
    expect(isRedriveError(signal?.reason, 'ATTEMPT_TIMEOUT')).toBe(true)
  })

  it('creates no AbortController when the handler does not read the signal', async () => {
    const { send, start, clock } = world()
    const Original = globalThis.AbortController
    let made = 0
    globalThis.AbortController = class extends Original {
      constructor() {
        super()
        made += 1
      }
    }
    try {
      await start(({ id }, context) => (id === 'asks' ? context.signal.aborted : undefined))
      for (let count = 0; count < 10; count++) send({})
      await clock.settle()
      expect(made).toBe(0)
      send({}, { id: 'asks' })
      await clock.settle()
      expect(made).toBe(1)
    } finally {
      globalThis.AbortController = Original
    }
  })
})

describe('an inbox that calls the handler again', () => {
  it('does not change the transaction of the first call', async () => {
    const { send, start, clock } = world()
    const seen: unknown[] = []
    const inbox: Inbox<string> = {
      async handle(_, work) {
        const first = work('first').catch(() => undefined)
        await work('second')
        await first
        return 'handled'
      },
    }
    let calls = 0
    await start<unknown, string>(
      async (_, context) => {
        calls += 1
        if (calls === 1) await new Promise<void>((resolve) => void clock.after(1, resolve))
        seen.push(context.tx)
      },
      { inbox },
    )
    send({})
    await clock.advance('1s')
    expect(seen).toEqual(['second', 'first'])
  })
})

describe('an inbox that deletes keys', () => {
  it('is rejected when dead letters are kept longer', async () => {
    const { start } = world()
    const inbox = { ...memoryInbox(), retentionMs: 86_400_000 }
    await expect(
      start<unknown, MemoryTransaction>(() => undefined, {
        inbox,
        deadLetter: { retention: '2d' },
      }),
    ).rejects.toThrow('keeps keys for 1d, but dead letters are kept for 2d')
    const consumer = await start<unknown, MemoryTransaction>(() => undefined, {
      inbox,
      deadLetter: { retention: '1d' },
    })
    expect(consumer.policy.deadLetter.retentionMs).toBe(inbox.retentionMs)
  })
})

describe('an inbox with a low concurrency', () => {
  it('lowers the concurrency, and never raises it', async () => {
    const { start } = world()
    const few = { ...memoryInbox(), maxConcurrency: 7 }
    const wide = await start<unknown, MemoryTransaction>(() => undefined, {
      inbox: few,
      concurrency: 50,
    })
    expect(wide.policy.concurrency).toBe(7)
    const narrow = await start<unknown, MemoryTransaction>(() => undefined, {
      inbox: few,
      concurrency: 3,
    })
    expect(narrow.policy.concurrency).toBe(3)
  })
})
