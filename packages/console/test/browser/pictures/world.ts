import { createClient } from '@redrive/api'
import type { Catalog } from '@redrive/catalog'
import type { Page } from 'playwright-core'
import { checkSource, openStage, seed, setOneAside, type Stage } from '../stage.ts'

/** The pictures show one server without dead letters, and one with several causes, runs and set-aside messages. */
export interface World {
  readonly calm: Stage
  readonly bad: Stage
  /** The time on every page. Without it, each picture would differ from the one of yesterday. */
  readonly now: number
  readonly group: string
  readonly running: string
  readonly paused: string
  readonly cancelled: string
  /** A plan of the user, and one of another person. */
  readonly own: string
  readonly waiting: string
  readonly aside: string
  end(): Promise<void>
}

export interface Picture {
  readonly name: string
  readonly open: (page: Page, world: World) => Promise<void>
}

/** The sources are not reached: the server runs only the API. */
const CONFIG = {
  sources: {
    orders: {
      rabbitmq: { url: 'amqp://127.0.0.1:1', queue: 'orders' },
      mask: ['/card/number', { pointer: '/customer/email', optional: true }],
      maskHeaders: ['X-Customer'],
    },
    payments: {
      rabbitmq: { url: 'amqp://127.0.0.1:1', queue: 'payments' },
      mask: ['/card/number', '/customer/email'],
    },
  },
  fingerprints: [
    {
      name: 'Lock timeouts',
      match: { text: 'lock timeout', code: '55P03' },
      group: 'lock timeouts',
    },
    { name: 'Imports', source: 'orders', match: { handler: 'import' }, group: 'imports' },
  ],
  masking: { detectors: ['privateKey', 'token', 'card', 'iban'] },
}

const MINUTE_MS = 60_000
const spread = (count: number, from: number, to: number) =>
  Array.from(
    { length: count },
    (_, at) => Date.now() - (from - ((from - to) * at) / count) * MINUTE_MS,
  )

export async function openWorld(): Promise<World> {
  const calm = await openStage('redrive_console_pictures_calm')
  const bad = await openStage('redrive_console_pictures_bad', { config: CONFIG })
  const group = await seedCauses(bad.catalog)
  const runs = await startRuns(bad.catalog, group)
  const aside = await setAside(bad.catalog)
  const own = await useApi(bad, group)
  const now = Date.now()
  const end = async () => {
    await calm.end()
    await bad.end()
  }
  return { calm, bad, now, group, ...runs, own, aside, end }
}

/** Returns the id of the largest group. */
async function seedCauses(catalog: Catalog): Promise<string> {
  const group = await seed(catalog, {
    ...{ source: 'orders', class: 'transient', code: 'ECONNREFUSED' },
    message: 'connect ECONNREFUSED payments-api:8080',
    times: spread(420, 25, 6.5),
  })
  await seed(catalog, {
    ...{ source: 'orders', class: 'transient', code: 'ETIMEDOUT' },
    message: 'connect ETIMEDOUT payments-api:8080',
    times: spread(38, 24, 11),
  })
  await seed(catalog, {
    ...{ source: 'payments', class: 'schema', code: 'PAYLOAD_INVALID' },
    message: 'expected string, received undefined at /currency',
    times: spread(180, 112, 0.2),
    body: {
      ...{ id: 'pay_20931', order: { id: 'ord_88213', placedAt: '2026-11-16T00:46:51Z' } },
      ...{ amount: 12_950, method: 'card', card: { number: '5500000000000004', network: 'visa' } },
      customer: { id: 'cus_NffrFeUfNVaHib', email: 'ada@shop.example' },
    },
  })
  await seed(catalog, {
    ...{ source: 'events', class: 'business', code: 'DUPLICATE_INVOICE' },
    message: 'invoice 4711 is already paid',
    times: spread(130, 76, 16),
  })
  return group
}

async function startRuns(catalog: Catalog, group: string) {
  const { replays } = catalog
  const running = await startRun(catalog, 'refunds', 4)
  const paused = await startRun(catalog, 'shipments', 3)
  await replays.pause(paused, { by: 'ben' })
  const cancelled = await startRun(catalog, 'returns', 12)
  await replays.cancel(cancelled, { by: 'ben' })
  const note = 'payments-api was rolled back at 02:57, incident 4411'
  const { id: waiting } = await replays.plan({ selection: { group }, by: 'ben', note })
  return { running, paused, cancelled, waiting }
}

/** Starts a replay of a new cause. No worker publishes it. */
async function startRun(catalog: Catalog, source: string, count: number): Promise<string> {
  const of = await seed(catalog, {
    ...{ source, class: 'transient', message: `read ECONNRESET ${source}` },
    times: spread(count, 9, 7),
  })
  const { id, hash } = await catalog.replays.plan({ selection: { group: of }, by: 'ben' })
  await catalog.replays.approve(id, { by: 'ada', hash })
  return id
}

/** Returns the id of one of three messages. */
async function setAside(catalog: Catalog): Promise<string> {
  const headers = { 'x-stack': 'at charge (billing.ts:41)', traceparent: '00-4bf92f3577b34da6' }
  await setOneAside(catalog, 'shipments', { body: { shipment: 88_123, parcels: [1, 2] } })
  const requested = await setOneAside(catalog, 'payments', { body: { order: 8_841 } })
  await catalog.setAside.requestReplay([requested], { by: 'https://id.example#ben' })
  return setOneAside(catalog, 'orders', {
    body: { order: 4_711, card: { number: '4111' }, note: 'a\u202Eb' },
    headers,
  })
}

/** Makes entries of the audit log. Returns the id of a plan of the user. */
async function useApi({ url }: Stage, group: string): Promise<string> {
  const client = createClient({ url })
  await client.call('commentGroup', { params: { id: group }, body: { text: 'Looking at it.' } })
  await client.call('revokeToken', { params: { id: group } }).catch(() => undefined)
  const body = { name: 'laptop', actions: ['view' as const], sources: ['orders*'], days: 30 }
  const { secret } = await client.call('createToken', { body })
  const weak = createClient({ url, token: secret })
  await weak.call('listAudit', {}).catch(() => undefined)
  const { id } = await client.call('planReplay', { body: { selection: { group } } })
  return id
}

/** Stores what a process found at the brokers. A check counts for one minute, and the pictures take longer. */
export async function checkSources({ catalog }: Stage): Promise<void> {
  await checkSource(catalog, 'orders', { depth: 12, lag: 140 })
  await checkSource(catalog, 'payments', { depth: 0, lag: 3 })
  await checkSource(catalog, 'shipments', {
    unreachable:
      "ACCESS_REFUSED: read access to queue 'shipments.dlq' in vhost 'shop' refused for user 'redrive'",
  })
}

/** Answers every request of the API in this way. */
export const answer = (
  page: Page,
  status: number,
  code: string,
  paths = 'overview,groups,groups/**,dead-letters,dead-letters/**',
) =>
  page.route(`**/api/v1/{${paths}}**`, (route) =>
    route.fulfill({
      status,
      contentType: 'application/problem+json',
      body: JSON.stringify({
        ...{ type: `urn:redrive:problem:${code}`, title: code, status, code },
        ...{ detail: 'Cannot connect to the database.', requestId: '5f20c1aa' },
      }),
    }),
  )

/** Changes the caller: by default a user with a session who may only view. */
export const callAs = (
  page: Page,
  change: object = {
    name: 'Chen Wu',
    via: 'session',
    grants: [{ actions: ['view'], sources: ['*'] }],
  },
) =>
  page.route('**/api/v1/me', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...((await response.json()) as object), ...change } })
  })

/** Waits until the editor has marked an error. It compares times, and the clock of the page does not move. */
export async function waitForLint(page: Page, now: number): Promise<void> {
  await page.clock.setFixedTime(now + 1_000)
  await page.locator('.cm-lint-marker-error').waitFor()
}
