import { randomUUID } from 'node:crypto'
import { business } from '@redrive/core'
import { GUARDS_OFF } from '@redrive/dev-support'
import { MemoryBroker, memory, send } from '@redrive/memory'
import {
  type ConsumeOptions,
  consume,
  dependency,
  type Handler,
  publishEvent,
} from '@redrive/runtime'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type AlertChannel,
  type AlertNotice,
  type AlertsOptions,
  startAlerts,
} from '../src/index.ts'

class CardDeclined extends Error {}

/** A consumer in memory whose alerts reach a recording channel. Everything runs on one fake clock. */
function shop(options: Partial<AlertsOptions> & { readonly batch?: number } = {}) {
  const clock = new FakeClock()
  const broker = new MemoryBroker({ clock })
  const messages: (readonly AlertNotice[])[] = []
  const errors: string[] = []
  const state: { isFailing: boolean; error: Error; during?: Promise<void> } = {
    isFailing: false,
    error: Object.assign(new Error('503'), { status: 503 }),
  }
  const channel: { -readonly [Key in keyof AlertChannel]: AlertChannel[Key] } = {
    name: 'test',
    address: 'test',
    batch: options.batch ?? 100,
    preview: () => '',
    async send(notices) {
      await state.during
      if (state.isFailing) throw state.error
      messages.push(notices)
    },
    async close() {},
  }
  const logger = { error: (line: string) => void errors.push(line) }
  const alerts = startAlerts({ channels: [channel], clock, logger, ...options })
  onTestFinished(() => alerts.close())
  return {
    ...{ clock, alerts, state, errors, messages, channel },
    /** Received alerts, one list for each message: `dead_letter firing`. */
    received: () => messages.map((all) => all.map(({ kind, status }) => `${kind} ${status}`)),
    send: (body: unknown, headers: Readonly<Record<string, unknown>> = {}) =>
      send(broker, 'orders', body, { headers }),
    start: async (handler: Handler, more: ConsumeOptions = {}, queue = 'orders') => {
      const policy = { ...GUARDS_OFF, concurrency: 10, logger: 'off' as const, name: 'billing' }
      const consumer = await consume(memory({ broker, queue }), handler, {
        ...policy,
        ...more,
        clock,
      })
      onTestFinished(() => consumer.stop({ drain: 0 }))
      return consumer
    },
  }
}

const declined: Handler = () => {
  throw new CardDeclined('card 4000-0002 was declined')
}
const DECLINED: ConsumeOptions = { classify: [business(CardDeclined)] }
/** The guards of the defaults, which the other tests switch off. */
const DEFAULTS: ConsumeOptions = { breaker: {}, retry: {}, outage: {} }
const unreachable: Handler = () => {
  throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:443'), { code: 'ECONNREFUSED' })
}

describe('a dead letter', () => {
  it('is an alert with its type, consumer, target, class, attempts and error', async () => {
    const { clock, start, send, messages } = shop()
    await start(declined, DECLINED)
    send('1', { type: 'order.placed' })
    await clock.advance('10s')
    expect(messages).toMatchObject([
      [
        {
          kind: 'dead_letter',
          status: 'firing',
          severity: 'warning',
          source: 'orders',
          facts: {
            handler: 'billing',
            class: 'business',
            attempts: 1,
            reason: 'terminal',
            error: 'card 4000-0002 was declined',
            count: 1,
          },
        },
      ],
    ])
  })

  it('is one alert for all similar ones, which ends after 15 quiet minutes with their number', async () => {
    const { clock, start, send, received, messages } = shop()
    await start(declined, DECLINED)
    for (let minute = 0; minute < 20; minute++) {
      send('1')
      await clock.advance('1m')
    }
    expect(received()).toEqual([['dead_letter firing']])
    await clock.advance('13m')
    expect(received()).toHaveLength(1)
    await clock.advance('2m')
    expect(received()).toEqual([['dead_letter firing'], ['dead_letter resolved']])
    const [[begin], [end]] = messages as [[AlertNotice], [AlertNotice]]
    expect([end.key, end.id, end.facts.count]).toEqual([begin.key, begin.id, 20])
  })

  it('of another kind of failure is another alert, in the same message', async () => {
    const { clock, start, send, received, messages } = shop()
    await start(({ body }) => {
      throw new CardDeclined(body === 'a' ? 'no money' : 'stolen card')
    }, DECLINED)
    send('a')
    send('b')
    await clock.advance('10s')
    expect(received()).toEqual([['dead_letter firing', 'dead_letter firing']])
    expect(new Set(messages[0]?.map(({ key }) => key)).size).toBe(2)
  })
})

describe('a circuit breaker', () => {
  const GUARDED: ConsumeOptions = { breaker: {}, retry: {} }

  it('is an alert from its opening until it closes, with the same key', async () => {
    const { clock, start, send, messages, received } = shop({ kinds: ['breaker_open'] })
    const state = { isDown: true }
    const handler: Handler = (...all) => (state.isDown ? unreachable(...all) : undefined)
    await start(handler, { ...GUARDED, dependency: dependency(randomUUID()) })
    for (let each = 0; each < 20; each++) send(each)
    await clock.advance('10m')
    expect(received()).toEqual([['breaker_open firing']])
    state.isDown = false
    await clock.advance('10m')
    expect(received()).toEqual([['breaker_open firing'], ['breaker_open resolved']])
    expect(messages[0]?.[0]).toMatchObject({ severity: 'critical', facts: { handler: 'billing' } })
    expect(messages[1]?.[0]?.key).toBe(messages[0]?.[0]?.key)
  })

  it('that an operator isolates is an alert of each source, until it is restored', async () => {
    const { clock, start, received } = shop()
    const payments = dependency(randomUUID())
    await start(() => undefined, { ...GUARDED, dependency: payments })
    await start(() => undefined, { ...GUARDED, dependency: payments }, 'mails')
    payments.isolate()
    await clock.advance('10s')
    expect(received()).toEqual([['breaker_open firing', 'breaker_open firing']])
    await clock.advance('1h')
    payments.restore()
    await clock.advance('10s')
    expect(received().slice(1)).toEqual([['breaker_open resolved', 'breaker_open resolved']])
  })
})

describe('states of consumers', () => {
  it('a message that fails unproven for an hour is an alert after half an hour', async () => {
    const { clock, start, send, messages, received } = shop()
    await start(unreachable, DEFAULTS)
    send('1')
    await clock.advance('29m')
    expect(received().flat()).not.toContain('unproven firing')
    await clock.advance('2m')
    expect(received().flat()).toContain('unproven firing')
    const notice = messages.flat().find(({ kind }) => kind === 'unproven')
    expect(notice?.facts.ageMs).toBeGreaterThanOrEqual(1_800_000)
    expect(notice?.runbook).toMatch(/runbooks\.md#redrivemessageunproven$/)
  })

  it('a handler that does not end is an alert until it ends', async () => {
    const { clock, start, send, received } = shop()
    const { promise, resolve } = Promise.withResolvers<void>()
    await start(() => promise, { timeout: '1s', grace: '1s' })
    send('1')
    await clock.advance('5m')
    expect(received().flat()).toContain('handlers_hung firing')
    expect(received().flat()).not.toContain('handlers_hung resolved')
    resolve()
    await clock.advance('10s')
    expect(received().flat()).toContain('handlers_hung resolved')
  })
})

it('an event that reached neither sink nor store is an alert', async () => {
  const { clock, messages } = shop()
  publishEvent({
    ...{ type: 'emission_failed', at: clock.now(), source: 'audit', job: undefined },
    event: { id: 'e1', key: 'e1', type: 'order.placed', lane: undefined, at: 0 } as never,
    result: { kind: 'lost', error: new Error('disk full') },
  })
  await clock.advance('10s')
  expect(messages).toMatchObject([
    [{ kind: 'event_lost', facts: { eventType: 'order.placed', error: 'disk full' } }],
  ])
})

describe('delivery', () => {
  it('repeats a message that was not accepted, and reports it', async () => {
    const { clock, start, send, state, errors, received } = shop()
    await start(declined, DECLINED)
    state.isFailing = true
    send('1')
    await clock.advance('50s')
    expect(errors).toEqual(['Cannot send alerts to test: Error: 503'])
    state.isFailing = false
    await clock.advance('2m')
    expect(received()).toEqual([['dead_letter firing']])
  })

  it('sends nothing for an alert that ended before its channel accepted anything', async () => {
    const { clock, start, send, state, received } = shop({ quiet: '2m' })
    await start(declined, DECLINED)
    state.isFailing = true
    send('1')
    await clock.advance('5m')
    state.isFailing = false
    await clock.advance('5m')
    expect(received()).toEqual([])
  })

  it('sends the end of an alert that ended while its begin was being sent', async () => {
    const { clock, start, send, state, received } = shop({ quiet: '2m' })
    await start(declined, DECLINED)
    const { promise, resolve } = Promise.withResolvers<void>()
    state.during = promise
    send('1')
    await clock.advance('5m')
    resolve()
    await clock.advance('10s')
    expect(received()).toEqual([['dead_letter firing'], ['dead_letter resolved']])
  })

  it('sends the end of an alert whose begin the channel may have accepted', async () => {
    const { clock, start, send, state, received } = shop({ quiet: '2m' })
    await start(declined, DECLINED)
    state.isFailing = true
    state.error = new DOMException('The operation timed out', 'TimeoutError')
    send('1')
    await clock.advance('1m')
    state.isFailing = false
    await clock.advance('5m')
    expect(received().flat()).toContain('dead_letter resolved')
  })

  it('gives up an alert that the channel rejects three times, and sends the others', async () => {
    const { clock, start, send, channel, errors, received } = shop()
    await start(({ body }) => {
      throw new CardDeclined(body === 'a' ? 'no money' : 'stolen card')
    }, DECLINED)
    const accept = channel.send
    channel.send = async (notices, options) => {
      if (notices.some(({ facts }) => facts.error === 'no money'))
        throw Object.assign(new Error('too long'), { status: 400 })
      return accept(notices, options)
    }
    send('a')
    send('b')
    await clock.advance('10m')
    expect(received()).toEqual([['dead_letter firing']])
    expect(errors.at(-1)).toMatch(/gave up .*dead_letter.*too long/)
    expect(errors).toHaveLength(3)
  })

  it('sends critical alerts before others, and above the limit', async () => {
    const { clock, received, start, send } = shop({ perHour: 1, batch: 1 })
    await start(({ body }) => {
      throw new CardDeclined(`reason ${'abc'.charAt(Number(body))}`)
    }, DECLINED)
    for (const body of [0, 1]) send(body)
    await clock.advance('1s')
    publishEvent({
      ...{ type: 'messages_expired', at: clock.now(), source: 'orders', where: 'q', count: 1 },
    })
    await clock.advance('1m')
    expect(received().flat()).toEqual(['messages_expired firing', 'dead_letter firing'])
  })

  it('hides personal data in errors, unless the option turns this off', async () => {
    const hidden = shop()
    await hidden.start(() => {
      throw new CardDeclined('no account for jane@example.com')
    }, DECLINED)
    hidden.send('1')
    await hidden.clock.advance('10s')
    expect(JSON.stringify(hidden.messages)).not.toContain('jane@')
    expect(hidden.messages[0]?.[0]?.facts.error).toBe('no account for [hidden: e-mail]')
    const shown = shop({ redact: (text) => text })
    await shown.start(() => {
      throw new CardDeclined('no account for jane@example.com')
    }, DECLINED)
    shown.send('1')
    await shown.clock.advance('10s')
    expect(shown.messages[0]?.[0]?.facts.error).toContain('jane@')
  })

  it('limits the messages with new alerts of an hour, and never the ends', async () => {
    const { clock, start, send, received } = shop({ perHour: 1, quiet: '2m', batch: 1 })
    await start(({ body }) => {
      throw new CardDeclined(`reason ${'abc'.charAt(Number(body))}`)
    }, DECLINED)
    for (const body of [0, 1]) send(body)
    await clock.advance('10m')
    expect(received()).toEqual([['dead_letter firing'], ['dead_letter resolved']])
    await clock.advance('51m')
    send(2)
    await clock.advance('10s')
    expect(received()).toHaveLength(3)
  })

  it('sends what waits when it is closed, and nothing afterwards', async () => {
    const { clock, start, send, alerts, received } = shop()
    await start(declined, DECLINED)
    send('1')
    await clock.advance('1s')
    await alerts.close()
    expect(received()).toEqual([['dead_letter firing']])
    send('2')
    await clock.advance('1h')
    expect(received()).toHaveLength(1)
  })

  it('sends only the chosen kinds', async () => {
    const { clock, start, send, received } = shop({ kinds: ['breaker_open'] })
    await start(declined, DECLINED)
    send('1')
    await clock.advance('1m')
    expect(received()).toEqual([])
  })
})

it('rejects invalid options together', () => {
  const options = { channels: [], quiet: 'soon', perHour: 0, kinds: ['disk_full'] } as never
  expect(() => startAlerts(options)).toThrow(/channels:[^]*kinds:[^]*perHour:/)
  expect(() => startAlerts(options)).toThrow(/quiet: expected a duration/)
})
