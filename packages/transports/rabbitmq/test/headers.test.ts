import { FIRST_CYCLE } from '@redrive/core'
import type { ConsumeMessage } from 'amqplib'
import { describe, expect, it } from 'vitest'
import {
  copiedAddressOf,
  type CopyOptions,
  copyOf,
  envelopeOf,
  type RabbitMqDelivery,
  replayOf,
  toDelivery,
  unheardIn,
} from '../src/delivery.ts'
import { checkEncodable } from '../src/message/check-encodable.ts'
import { failedCycle } from './rig.ts'

const SOURCE = 'orders'

interface SentMessage {
  readonly properties?: Readonly<Record<string, unknown>>
  readonly fields?: { readonly exchange?: string; readonly routingKey?: string }
  readonly body?: string
}

function arrived({
  properties = {},
  fields = {},
  body = 'body',
}: SentMessage = {}): ConsumeMessage {
  const raw = {
    content: Buffer.from(body),
    fields: { deliveryTag: 1, redelivered: false, consumerTag: 'c', exchange: '', ...fields },
    properties,
  }
  return { ...raw, fields: { routingKey: SOURCE, ...raw.fields } } as unknown as ConsumeMessage
}

const NO_ADDRESS = { exchange: 'none', routingKey: 'none' }

const RETRY: CopyOptions = { cycle: failedCycle(1), reason: 'backoff', budgetBytes: 8_192 }

/** Copies a message and returns the copy as received from a delay queue, through the default exchange. */
function hop(delivery: RabbitMqDelivery, options: Partial<CopyOptions> = {}): RabbitMqDelivery {
  const { properties, content } = copyOf(delivery, { ...RETRY, ...options })
  const raw = arrived({ properties: properties as Record<string, unknown> })
  return toDelivery(SOURCE, { ...raw, content })
}

const headersOf = (delivery: RabbitMqDelivery) =>
  copyOf(delivery, RETRY).properties.headers as Record<string, unknown>

describe('a message without headers', () => {
  it('is a first attempt with the id of its producer', () => {
    for (const properties of [{ messageId: 'm-1' }, { messageId: 'm-1', headers: {} }]) {
      const raw = arrived({
        properties: { ...properties, type: 'paid', contentType: 'text/plain' },
      })
      expect(toDelivery(SOURCE, raw)).toEqual({
        raw,
        id: 'm-1',
        source: SOURCE,
        lane: undefined,
        key: 'm-1',
        type: 'paid',
        bytes: raw.content,
        contentType: 'text/plain',
        headers: {},
        cycle: FIRST_CYCLE,
        deliveryCount: 1,
        replayId: undefined,
        headerProblems: [],
      })
    }
  })

  it('is read like a message with headers', () => {
    const fast = toDelivery(SOURCE, arrived({ properties: { messageId: 'm-1', type: 'paid' } }))
    const slow = toDelivery(
      SOURCE,
      arrived({ properties: { messageId: 'm-1', type: 'paid', headers: { a: 1 } } }),
    )
    expect({ ...fast, raw: 0, headers: 0 }).toEqual({ ...slow, raw: 0, headers: 0 })
    expect(slow.headers).toEqual({ a: 1 })
  })

  it('gets a new id when it has none, and its copies keep it', () => {
    for (const messageId of [undefined, '']) {
      const first = toDelivery(SOURCE, arrived({ properties: { messageId } }))
      const other = toDelivery(SOURCE, arrived({ properties: { messageId } }))
      expect(first.id).toMatch(/^[0-9a-f-]{36}$/)
      expect(first.key).toBe(first.id)
      expect(other.id).not.toBe(first.id)
      expect(hop(hop(first)).id).toBe(first.id)
    }
  })
})

describe('identity', () => {
  it('keeps the id and the key of the producer in every copy', () => {
    const properties = { messageId: 'm-1', headers: { 'redrive-key': 'order 7 €' } }
    const third = hop(hop(toDelivery(SOURCE, arrived({ properties }))))
    expect([third.id, third.key]).toEqual(['m-1', 'order 7 €'])
    expect(third.headerProblems).toEqual([])
  })
})

describe('a header of the broker', () => {
  const BROKERS = {
    'x-death': [{ queue: SOURCE, reason: 'expired', count: 1 }],
    'x-first-death-queue': SOURCE,
    'x-first-death-reason': 'expired',
    'x-first-death-exchange': '',
    'x-last-death-queue': SOURCE,
    'x-last-death-reason': 'expired',
    'x-last-death-exchange': '',
    'x-delivery-count': 2,
    'x-acquired-count': 3,
  }

  it('is neither shown to the handler nor copied', () => {
    const headers = { ...BROKERS, 'x-deathly': 'mine', 'x-retries': 4 }
    const delivery = toDelivery(SOURCE, arrived({ properties: { headers } }))
    expect(delivery.headers).toEqual({ 'x-deathly': 'mine', 'x-retries': 4 })
    const copied = Object.keys(headersOf(delivery)).filter((name) => name.startsWith('x-'))
    expect(copied).toEqual(['x-deathly', 'x-retries'])
  })

  it('counts unfinished deliveries, and a copy that returns the message keeps the count', () => {
    const delivery = toDelivery(SOURCE, arrived({ properties: { headers: BROKERS } }))
    expect(delivery.deliveryCount).toBe(3)
    const returned = hop(delivery, { cycle: delivery.cycle, unheard: unheardIn(delivery.raw) })
    expect(returned.deliveryCount).toBe(3)
    // The handler finished: a retry starts at 0 again.
    expect(hop(returned).deliveryCount).toBe(1)
  })

  it.each([['nonsense'], [-1], [1.5], [Number.NaN], [{}], ['99999999']])(
    'is ignored when it is %j',
    (count) => {
      const headers = { 'x-delivery-count': count, 'redrive-delivery-count': '0' }
      expect(toDelivery(SOURCE, arrived({ properties: { headers } })).deliveryCount).toBe(1)
    },
  )
})

describe('a property that the broker would act on again', () => {
  const properties = {
    messageId: 'm-1',
    expiration: '5000',
    userId: 'guest',
    headers: { CC: ['audit', 'billing'], BCC: ['secret'], mine: 1 },
  }

  it('is stored as JSON in the first copy', () => {
    const { properties: copied } = copyOf(toDelivery(SOURCE, arrived({ properties })), RETRY)
    expect(copied).not.toHaveProperty('expiration')
    expect(copied).not.toHaveProperty('userId')
    expect(copied.headers).not.toHaveProperty('CC')
    expect(copied.headers).not.toHaveProperty('BCC')
  })

  it('is visible to the handler after several copies', () => {
    const fourth = hop(hop(hop(toDelivery(SOURCE, arrived({ properties })))))
    expect(fourth.headers).toEqual({ mine: 1, CC: ['audit', 'billing'], BCC: ['secret'] })
    const aside = JSON.parse(String(headersOf(fourth)['redrive-aside'])) as unknown
    expect(aside).toEqual({
      headers: { CC: ['audit', 'billing'], BCC: ['secret'] },
      expiration: '5000',
      userId: 'guest',
    })
  })

  it('adds no header when no such property exists', () => {
    expect(headersOf(toDelivery(SOURCE, arrived()))).not.toHaveProperty('redrive-aside')
  })

  it.each([['{'], ['null'], ['7'], ['"text"'], ['{"headers":null}'], ['{"headers":7}'], [7]])(
    'counts as absent when the header contains %j',
    (aside) => {
      const headers = { 'redrive-aside': aside, mine: 1 }
      const delivery = toDelivery(SOURCE, arrived({ properties: { headers } }))
      expect(delivery.headers).toEqual({ mine: 1 })
      expect(hop(delivery).headers).toEqual({ mine: 1 })
    },
  )

  it('is replaced by the retention of a dead letter', () => {
    const delivery = toDelivery(SOURCE, arrived({ properties }))
    const { properties: copied } = copyOf(delivery, { ...RETRY, expiration: '86400000' })
    expect(copied.expiration).toBe('86400000')
    const kept = toDelivery(SOURCE, arrived({ properties: copied as Record<string, unknown> }))
    expect(String(headersOf(kept)['redrive-aside'])).toContain('"expiration":"5000"')
  })
})

describe('the original address', () => {
  it('is stored in the first copy and stays', () => {
    const fields = { exchange: 'events', routingKey: 'order.paid.eu' }
    const third = hop(hop(toDelivery(SOURCE, arrived({ fields }))))
    expect(headersOf(third)).toMatchObject({
      'redrive-exchange': 'events',
      'redrive-routing-key': 'order.paid.eu',
    })
    expect(copiedAddressOf(third.raw)).toEqual(fields)
  })

  it('may be a queue whose name is not ASCII', () => {
    const queue = 'größe 100%'
    const first = toDelivery(queue, arrived({ fields: { routingKey: queue } }))
    const { properties } = copyOf(first, RETRY)
    const raw = arrived({ properties: properties as Record<string, unknown> })
    expect(copiedAddressOf(raw)).toEqual({ exchange: '', routingKey: queue })
  })

  it('may be the default exchange', () => {
    expect(copiedAddressOf(hop(toDelivery(SOURCE, arrived())).raw)).toEqual({
      exchange: '',
      routingKey: SOURCE,
    })
  })
})

describe('every other property', () => {
  const KEPT = {
    messageId: 'm-1',
    type: 'paid',
    contentType: 'application/json',
    contentEncoding: 'gzip',
    correlationId: 'c-1',
    replyTo: 'answers',
    appId: 'shop',
    priority: 3,
    timestamp: 1_700_000_000,
  }

  it('is copied unchanged', () => {
    const copy = copyOf(toDelivery(SOURCE, arrived({ properties: KEPT, body: 'ÿ' })), RETRY)
    expect(copy.properties).toMatchObject(KEPT)
    expect(copy.content.toString()).toBe('ÿ')
  })

  it('is not added when the producer omitted it', () => {
    const { properties } = copyOf(toDelivery(SOURCE, arrived()), RETRY)
    expect(Object.keys(properties)).toEqual(['headers'])
  })

  it('is restored from the envelope by a replay, and every value in the envelope is text', () => {
    const fields = { exchange: 'events', routingKey: 'order.paid' }
    const delivery = hop(toDelivery(SOURCE, arrived({ properties: KEPT, fields })))
    const envelope = envelopeOf(delivery, copiedAddressOf(delivery.raw) ?? NO_ADDRESS)
    expect(Object.values(envelope).every((value) => typeof value === 'string')).toBe(true)
    const { raw: _, ...rest } = delivery
    const drained = { delivery: rest, origin: SOURCE, envelope, quarantined: false }
    const replay = replayOf(
      { ...drained, class: 'unknown', reason: 'terminal', identity: 'stable' },
      'r-1',
    )
    expect(replay.properties).toMatchObject(KEPT)
    const again = toDelivery(
      SOURCE,
      arrived({ properties: replay.properties as Record<string, unknown> }),
    )
    expect(again).toMatchObject({ id: 'm-1', key: 'm-1', replayId: 'r-1', headers: {} })
    expect(again.cycle).toEqual({ ...FIRST_CYCLE, number: 2 })
    expect(copiedAddressOf(again.raw)).toEqual(fields)
  })
})

describe('a header named __proto__', () => {
  it('changes no other header', () => {
    const headers = JSON.parse('{"__proto__": {"polluted": true}, "mine": 1}') as object
    const delivery = toDelivery(SOURCE, arrived({ properties: { headers } }))
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect((delivery.headers as { polluted?: unknown }).polluted).toBeUndefined()
    expect(Object.keys(headersOf(delivery))).toContain('mine')
  })
})

describe('headers that amqplib cannot encode', () => {
  const text = (bytes: number) => 'x'.repeat(bytes)

  it('are accepted up to 64 KiB', () => {
    // 4 bytes for the table, 2 for the name, 5 before the text.
    expect(() => checkEncodable({ a: text(65_536 - 11) })).not.toThrow()
    expect(() => checkEncodable({ a: text(65_536 - 10) })).toThrow(RangeError)
    expect(() => checkEncodable({ [text(255)]: 1 })).not.toThrow()
    expect(() => checkEncodable({ [text(256)]: 1 })).toThrow(RangeError)
  })

  it.each([
    ['a table with the name "!"', { a: { '!': 'mine' } }],
    ['a decimal without digits', { a: { '!': 'decimal', value: { places: 2 } } }],
    ['a decimal with negative places', { a: { '!': 'decimal', value: { places: -1, digits: 1 } } }],
    ['not a number', { a: Number.NaN }],
    ['a number below all types', { a: -(2 ** 64) }],
    ['a byte that is too large', { a: { '!': 'int8', value: 128 } }],
    ['a negative unsigned number', { a: { '!': 'uint16', value: -1 } }],
    ['text that is not a number', { a: { '!': 'int64', value: 'abc' } }],
    ['a timestamp that is too large', { a: { '!': 'timestamp', value: 2 ** 64 } }],
    ['a double that is text', { a: { '!': 'double', value: '1' } }],
    ['a function', { a: () => 1 }],
    ['a bigint in a list', { a: [1n] }],
  ])('contain %s', (_, headers) => {
    expect(() => checkEncodable(headers)).toThrow(TypeError)
  })

  it.each([
    ['nothing', { a: undefined, b: null }],
    ['nested tables and lists', { a: [{ b: [true, Buffer.from('x'), 1.5] }] }],
    ['typed values', { a: { '!': 'timestamp', value: 1 }, b: { '!': 'int64', value: '5' } }],
    ['a decimal', { a: { '!': 'decimal', value: { places: 2, digits: 1999 } } }],
    ['numbers at the limits', { a: -128, b: 2 ** 62, c: { '!': 'uint32', value: 2 ** 32 - 1 } }],
    ['not a number, as a double', { a: { '!': 'double', value: Number.NaN } }],
    ['many small numbers', { a: Array.from({ length: 30_000 }, () => 1) }],
  ])('do not contain %s', (_, headers) => {
    expect(() => checkEncodable(headers)).not.toThrow()
  })
})
