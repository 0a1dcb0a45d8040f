import type { AlertChannel, AlertNotice } from '@redrive/alerts'
import type { Alert } from '@redrive/catalog'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { createAlerting } from '../src/alerts/deliver-alerts.ts'
import { createDescribe, type DescribeDeps } from '../src/alerts/describe.ts'
import { serverDatabase } from './database-stage.ts'

const pool = await serverDatabase('redrive_server_alerts')

const received: (readonly AlertNotice[])[] = []
const failures: string[] = []
let isFailing = false
/** Delays every delivery. */
let during: Promise<void> | undefined

/** 10 s: a busy machine needs longer than the second of the default. */
const SOON = { timeout: 10_000 }

const DOWN = Object.assign(new Error('hook.test responded with 503'), { status: 503 })
const REJECTED = Object.assign(new Error('hook.test responded with 400'), { status: 400 })
const TIMEOUT = new DOMException('The operation timed out', 'TimeoutError')
let failure: Error = DOWN

const channel = (address = 'https://hook.test/secret', batch = 100): AlertChannel => ({
  name: 'test',
  address,
  batch,
  preview: () => '',
  async send(notices) {
    received.push(notices)
    await during
    if (isFailing) throw failure
  },
  async close() {},
})

const NO_CATALOG: DescribeDeps['catalog'] = {
  group: async () => undefined,
  groups: async () => ({ groups: [], nextCursor: undefined }),
  deadLetters: async () => ({ deadLetters: [], nextCursor: undefined, searchedTo: undefined }),
}
const describeWith = (deps: Partial<DescribeDeps> = {}) =>
  createDescribe({
    catalog: NO_CATALOG,
    reading: { text: (value) => value },
    publicUrl: 'https://redrive.test',
    ...deps,
  })
const alerting = ({ channels = [channel()], perHour = 60, waitMs = 30_000 } = {}) =>
  createAlerting({
    ...{ pool, channels, describe: describeWith(), perHour, waitMs },
    onFailure: ({ name }, error) => void failures.push(`${name}: ${String(error)}`),
  })

const DEPTH: Alert = { kind: 'depth', source: 'orders', depth: 100 }
const AGE: Alert = { kind: 'age', source: 'orders', ageMs: 1_800_000 }
/** Received alerts, one list for each message: `depth firing`. */
const messages = () =>
  received.map((all) => all.map(({ kind, status }) => `${kind} ${status}`).sort())
/** Moves all times of the alerts into the past. */
const age = (by: string) =>
  pool.query(`update redrive_server.alert set held_at = held_at - interval '${by}',
    ended_at = ended_at - interval '${by}', started_at = started_at - interval '${by}'`)

/** Lets the time of a claim or of a retry pass. */
const expire = () =>
  pool.query(`update redrive_server.alert set claimed_until = claimed_until - interval '1 hour'`)
/** The time until the next attempt, in seconds. */
const retryIn = async (): Promise<number> => {
  const { rows } = await pool.query<{ seconds: number }>(
    `select extract(epoch from max(claimed_until) - now())::float8 as seconds from redrive_server.alert`,
  )
  return rows[0]?.seconds ?? Number.NaN
}

beforeEach(async () => {
  received.length = 0
  failures.length = 0
  isFailing = false
  failure = DOWN
  during = undefined
  await pool.query('delete from redrive_server.alert')
  await pool.query('delete from redrive_server.alert_channel')
})

describe('the begin of an alert', () => {
  test('is delivered once, even if its numbers change', async () => {
    const deliver = alerting()
    await deliver([DEPTH, AGE])
    await deliver([{ ...DEPTH, depth: 200 }, AGE])
    expect(messages()).toEqual([['age firing', 'depth firing']])
  })

  test('is delivered separately for later alerts and other sources', async () => {
    const deliver = alerting()
    await deliver([DEPTH])
    await deliver([DEPTH, AGE, { ...DEPTH, source: 'payments' }])
    expect(messages()).toEqual([['depth firing'], ['age firing', 'depth firing']])
  })

  test('is delivered by only one of several processes', async () => {
    const processes = Array.from({ length: 8 }, () => alerting())
    await Promise.all(processes.map((deliver) => deliver([DEPTH, AGE])))
    expect(messages().flat().sort()).toEqual(['age firing', 'depth firing'])
  })

  test('is delivered once when several processes deliver many alerts, in any order', async () => {
    const all = Array.from({ length: 3_000 }, (_, at) => ({ ...DEPTH, source: `orders-${at}` }))
    const processes = Array.from({ length: 4 }, () =>
      alerting({ channels: [channel('https://hook.test', 1_000)], perHour: 1_000 }),
    )
    const deliver = (alerts: readonly Alert[]) =>
      Promise.all(processes.map((one, at) => one(at % 2 === 0 ? alerts : alerts.toReversed())))
    for (let round = 0; round < 3; round++) {
      await deliver(all)
      await age('10 minutes')
      await deliver(all.slice(1_500))
    }
    const told = received.flat().map(({ id, status }) => `${id} ${status}`)
    // Half of the alerts begin and end three times, the others begin once.
    expect([told.length, new Set(told).size]).toEqual([10_500, 10_500])
  })

  test('is not repeated after all processes were down for an hour', async () => {
    await alerting()([DEPTH])
    await age('1 hour')
    await alerting()([DEPTH])
    expect(messages()).toEqual([['depth firing']])
  })

  test('is repeated a minute after its delivery failed, with the same id', async () => {
    const deliver = alerting()
    isFailing = true
    await deliver([DEPTH])
    expect(failures).toEqual(['test: Error: hook.test responded with 503'])
    isFailing = false
    await deliver([DEPTH])
    expect(received).toHaveLength(1)
    expect(await retryIn()).toBeGreaterThan(40)
    await expire()
    await deliver([DEPTH])
    await deliver([DEPTH])
    expect(received).toHaveLength(2)
    expect(received[1]?.[0]?.id).toBe(received[0]?.[0]?.id)
  })

  test('is delivered by another process when the claim of a crashed one has expired', async () => {
    const deliver = alerting()
    isFailing = true
    await deliver([DEPTH])
    isFailing = false
    await pool.query(`update redrive_server.alert set claimed_until = now() + interval '1 min'`)
    await deliver([DEPTH])
    expect(received).toHaveLength(1)
    await pool.query(`update redrive_server.alert set claimed_until = now() - interval '1 s'`)
    await deliver([DEPTH])
    expect(received).toHaveLength(2)
  })

  test('reaches other channels when one is down', async () => {
    const down = channel('https://down.test')
    const broken: AlertChannel = { ...down, send: () => Promise.reject(new Error('down')) }
    await alerting({ channels: [broken, channel()] })([DEPTH])
    expect(messages()).toEqual([['depth firing']])
  })

  test('does not wait for a slow channel, and is not sent to it again in the meantime', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const deliver = alerting({ waitMs: 1 })
    during = promise
    await deliver([DEPTH])
    // The claim skips rows that another call locks, so the second call begins after it.
    await vi.waitFor(() => expect(received).toHaveLength(1), SOON)
    await deliver([DEPTH, AGE])
    resolve()
    await vi.waitFor(async () => {
      await deliver([DEPTH, AGE])
      expect(messages()).toEqual([['depth firing'], ['age firing']])
    }, SOON)
  })

  test('that the channel may have accepted is repeated later each time, and counts for the limit', async () => {
    const deliver = alerting({ perHour: 2 })
    isFailing = true
    failure = TIMEOUT
    await deliver([DEPTH])
    expect(await retryIn()).toBeLessThan(60)
    await expire()
    await deliver([DEPTH])
    expect(await retryIn()).toBeGreaterThan(60)
    await expire()
    await deliver([DEPTH])
    expect(received).toHaveLength(2)
  })

  test('is given up when the channel rejects it three times, and does not block others', async () => {
    const strict: AlertChannel = {
      ...channel('https://strict.test', 2),
      async send(notices) {
        if (notices.some(({ source }) => source === 's1')) throw REJECTED
        received.push(notices)
      },
    }
    const deliver = alerting({ channels: [strict], perHour: 10 })
    const many = Array.from({ length: 5 }, (_, at): Alert => ({ ...DEPTH, source: `s${at}` }))
    for (let call = 0; call < 4; call++) {
      await deliver(many)
      await expire()
    }
    const sources = received.flat().map(({ source }) => source)
    expect(sources.sort()).toEqual(['s0', 's2', 's3', 's4'])
    expect(failures).toHaveLength(3)
    expect(failures[2]).toMatch(/Gave up .*s1.*responded with 400/)
    await age('6 min')
    await deliver([])
    expect(received.flat().filter(({ status }) => status === 'resolved')).toHaveLength(4)
  })

  test('that two processes delivered does not end the alert', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    during = promise
    const deliveries = [alerting()([DEPTH])]
    await vi.waitFor(() => expect(received).toHaveLength(1), SOON)
    await expire()
    deliveries.push(alerting()([DEPTH]))
    await vi.waitFor(() => expect(received).toHaveLength(2), SOON)
    resolve()
    await Promise.all(deliveries)
    await age('6 min')
    await alerting()([])
    expect(messages().at(-1)).toEqual(['depth resolved'])
  })

  test('shares messages of the size that the channel accepts', async () => {
    const many = Array.from({ length: 250 }, (_, at): Alert => ({ ...DEPTH, source: `s${at}` }))
    await alerting()(many)
    expect(received.map(({ length }) => length)).toEqual([100, 100, 50])
  })
})

describe('the end of an alert', () => {
  test('is delivered once, after five minutes, with the same key and what the begin contained', async () => {
    const deliver = alerting()
    await deliver([DEPTH])
    await age('4 min')
    await deliver([])
    expect(messages()).toEqual([['depth firing']])
    await age('2 min')
    await Promise.all([deliver([]), alerting()([])])
    await deliver([])
    expect(messages()).toEqual([['depth firing'], ['depth resolved']])
    const [[begin], [end]] = received as [[AlertNotice], [AlertNotice]]
    expect([end.key, end.id, end.summary]).toEqual([begin.key, begin.id, begin.summary])
    expect(end.at - end.startedAt).toBeGreaterThan(0)
  })

  test('is repeated until the channel accepts it', async () => {
    const deliver = alerting()
    await deliver([DEPTH])
    await age('6 min')
    isFailing = true
    await deliver([])
    isFailing = false
    await expire()
    await deliver([])
    expect(messages()).toEqual([['depth firing'], ['depth resolved'], ['depth resolved']])
  })

  test('is not delivered when the begin was not', async () => {
    const deliver = alerting()
    isFailing = true
    await deliver([DEPTH])
    isFailing = false
    received.length = 0
    await age('6 min')
    await expire()
    await deliver([])
    expect(received).toEqual([])
  })

  test('is followed by a new begin with another id and the same key', async () => {
    const deliver = alerting()
    await deliver([DEPTH])
    await age('6 min')
    await deliver([])
    await deliver([DEPTH])
    expect(messages()).toEqual([['depth firing'], ['depth resolved'], ['depth firing']])
    const [first, , again] = received.map(([one]) => one)
    expect([again?.key === first?.key, again?.id === first?.id]).toEqual([true, false])
  })
})

describe('the limit of messages', () => {
  const many = Array.from({ length: 5 }, (_, at): Alert => ({ ...DEPTH, source: `s${at}` }))

  test('lets further alerts wait for the next hour, for all processes together', async () => {
    const slow = () => alerting({ channels: [channel('https://one.test', 1)], perHour: 3 })
    await Promise.all([slow()(many), slow()(many)])
    await slow()(many)
    expect(received).toHaveLength(3)
    await pool.query(
      `update redrive_server.alert_channel set hour_started_at = now() - interval '61 min'`,
    )
    await slow()(many)
    expect(received).toHaveLength(5)
  })

  test('does not hold back critical alerts, which are sent first; new kinds of failures are last', async () => {
    const noise = Array.from(
      { length: 5 },
      (_, at): Alert => ({ kind: 'new_signature', source: 'orders', group: `g${at}` }),
    )
    const mismatch: Alert = { kind: 'replay_mismatch', source: 'orders', count: 1 }
    const channels = [channel('https://one.test', 1)]
    await alerting({ channels, perHour: 2 })([...noise, DEPTH, mismatch])
    expect(messages().flat()).toEqual([
      'replay_mismatch firing',
      'depth firing',
      'new_signature firing',
    ])
    await alerting({ channels, perHour: 2 })([{ ...mismatch, source: 'payments' }])
    expect(messages().flat().at(-1)).toBe('replay_mismatch firing')
  })

  test('does not hold back ends, and does not count failures', async () => {
    const deliver = alerting({ perHour: 1 })
    isFailing = true
    await deliver([DEPTH])
    isFailing = false
    await expire()
    await deliver([DEPTH])
    await age('6 min')
    await deliver([])
    expect(messages().at(-1)).toEqual(['depth resolved'])
  })
})

test('the address of a channel is not stored, and ended alerts are deleted after a day', async () => {
  const deliver = alerting()
  await deliver([DEPTH])
  const { rows } = await pool.query<{ text: string }>(
    'select alert::text as text from redrive_server.alert',
  )
  expect(rows[0]?.text).not.toContain('hook.test')
  await age('6 min')
  await deliver([])
  await age('25 hours')
  await deliver([AGE])
  const left = await pool.query<{ key: string }>('select key from redrive_server.alert')
  expect(left.rows.map(({ key }) => key)).toEqual(['["age","orders",null]'])
})

test('the alerts of a removed channel are deleted after a day', async () => {
  await alerting({ channels: [channel('https://removed.test')] })([DEPTH])
  await alerting()([])
  expect((await pool.query('select from redrive_server.alert')).rowCount).toBe(1)
  await age('25 hours')
  await pool.query(
    `update redrive_server.alert_channel set hour_started_at = now() - interval '25 hours'`,
  )
  await alerting()([])
  expect((await pool.query('select from redrive_server.alert')).rowCount).toBe(0)
  expect((await pool.query('select from redrive_server.alert_channel')).rowCount).toBe(0)
})

describe('the content of an alert', () => {
  test('names the cause of the largest group, without personal data, and links the console', async () => {
    const catalog = {
      ...NO_CATALOG,
      groups: async () => ({ groups: [GROUP], nextCursor: undefined }),
      deadLetters: async () => ({
        deadLetters: [LAST],
        nextCursor: undefined,
        searchedTo: undefined,
      }),
    } as unknown as DescribeDeps['catalog']
    const reading = { text: (value: string) => value.replaceAll('a@b.de', '***') }
    const content = await describeWith({ catalog, reading })(DEPTH)
    expect(content).toMatchObject({
      key: 'redrive.test/depth/orders',
      severity: 'warning',
      summary: 'orders has 100 open dead letters',
      facts: { ...FACTS, error: 'no account for ***', depth: 100 },
      link: 'https://redrive.test/groups?q=source%3Aorders',
      runbook: expect.stringContaining('runbooks.md#redrivedeadlettershigh') as string,
    })
    expect(content.facts.ageMs).toBeGreaterThan(0)
  })

  test('of a new kind of failure contains its title and links its group', async () => {
    const catalog = {
      ...NO_CATALOG,
      group: async () => GROUP,
    } as unknown as DescribeDeps['catalog']
    const alert: Alert = { kind: 'new_signature', source: 'orders', group: GROUP.id }
    expect(await describeWith({ catalog })(alert)).toMatchObject({
      key: 'redrive.test/new_signature/orders/9f1c',
      summary: 'orders has a new kind of failure: no account for <v>',
      link: 'https://redrive.test/groups/9f1c',
    })
  })
})

const FACTS = {
  eventType: 'order.placed',
  handler: 'billing',
  target: 'orders',
  class: 'business',
  attempts: 3,
  messageId: 'm-1',
  group: '9f1c',
}
const GROUP = {
  id: '9f1c',
  source: 'orders',
  handler: 'billing',
  class: 'business',
  code: undefined,
  title: 'no account for <v>',
  sample: 'no account for a@b.de',
  firstSeenAt: Date.now() - 60_000,
}
const LAST = {
  type: 'order.placed',
  origin: 'orders',
  message: 'no account for a@b.de',
  attempts: 3,
  messageId: 'm-1',
}
