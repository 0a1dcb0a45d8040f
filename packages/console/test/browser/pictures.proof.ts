import { mkdirSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient } from '@redrive/api'
import { ROOT } from '@redrive/dev-support'
import {
  expectAccessible,
  expectNoSidewaysScroll,
  launch,
  NARROW,
  openTab,
  WIDE,
} from './browser.ts'
import { checkSource, openStage, seed, setOneAside, type Stage } from './stage.ts'

const FOLDER = `${ROOT}.reports/console`
const MINUTE_MS = 60_000
const spread = (count: number, from: number, to: number) =>
  Array.from(
    { length: count },
    (_, at) => Date.now() - (from - ((from - to) * at) / count) * MINUTE_MS,
  )

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

let browser: Browser
let calm: Stage
let bad: Stage
let group: string
/** Runs in three states. */
let running: string
let paused: string
let waiting: string
let aside: string

beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true })
  browser = await launch()
  calm = await openStage('redrive_console_pictures_calm')
  bad = await openStage('redrive_console_pictures_bad', { config: CONFIG })
  group = await seed(bad.catalog, {
    ...{ source: 'orders', class: 'transient', code: 'ECONNREFUSED' },
    message: 'connect ECONNREFUSED payments-api:8080',
    times: spread(420, 25, 6.5),
  })
  await seed(bad.catalog, {
    ...{ source: 'payments', class: 'schema', code: 'PAYLOAD_INVALID' },
    message: 'expected string, received undefined at /currency',
    times: spread(180, 112, 0.2),
    body: {
      ...{ id: 'pay_20931', order: { id: 'ord_88213', placedAt: '2026-11-16T00:46:51Z' } },
      ...{ amount: 12_950, method: 'card', card: { number: '5500000000000004', network: 'visa' } },
      customer: { id: 'cus_NffrFeUfNVaHib', email: 'ada@shop.example' },
    },
  })
  await seed(bad.catalog, {
    ...{ source: 'events', class: 'business', code: 'DUPLICATE_INVOICE' },
    message: 'invoice 4711 is already paid',
    times: spread(130, 76, 16),
  })
  const made = [await run('refunds', 4), await run('shipments', 3)]
  running = made[0] ?? ''
  paused = made[1] ?? ''
  await bad.catalog.replays.pause(paused, { by: 'ben' })
  const note = 'payments-api was rolled back at 02:57, incident 4411'
  waiting = (await bad.catalog.replays.plan({ selection: { group }, by: 'ben', note })).id
})

/** Starts a replay of a new cause. No worker publishes it. */
async function run(source: string, count: number): Promise<string> {
  const of = await seed(bad.catalog, {
    ...{ source, class: 'transient', message: `read ECONNRESET ${source}` },
    times: spread(count, 9, 7),
  })
  const { replays } = bad.catalog
  const { id, hash } = await replays.plan({ selection: { group: of }, by: 'ben' })
  await replays.approve(id, { by: 'ada', hash })
  return id
}

beforeAll(async () => {
  const headers = { 'x-stack': 'at charge (billing.ts:41)', traceparent: '00-4bf92f3577b34da6' }
  await setOneAside(bad.catalog, 'shipments', { body: { shipment: 88_123, parcels: [1, 2] } })
  const requested = await setOneAside(bad.catalog, 'payments', { body: { order: 8_841 } })
  await bad.catalog.setAside.requestReplay([requested], { by: 'https://id.example#ben' })
  aside = await setOneAside(bad.catalog, 'orders', {
    body: { order: 4_711, card: { number: '4111' }, note: 'a\u202Eb' },
    headers,
  })
})
beforeAll(async () => {
  const client = createClient({ url: bad.url })
  await client.call('commentGroup', { params: { id: group }, body: { text: 'Looking at it.' } })
  await client.call('revokeToken', { params: { id: group } }).catch(() => undefined)
  const body = { name: 'laptop', actions: ['view' as const], sources: ['orders*'], days: 30 }
  const { secret } = await client.call('createToken', { body })
  const weak = createClient({ url: bad.url, token: secret })
  await weak.call('listAudit', {}).catch(() => undefined)
})
afterAll(async () => {
  await browser?.close()
  await calm?.end()
  await bad?.end()
})

interface Picture {
  readonly name: string
  readonly open: (page: Page) => Promise<void>
}

/** A check counts for one minute, and the pictures take longer. */
async function checkSources(): Promise<void> {
  await checkSource(bad.catalog, 'orders', { depth: 12, lag: 140 })
  await checkSource(bad.catalog, 'payments', { depth: 0, lag: 3 })
  await checkSource(bad.catalog, 'shipments', {
    unreachable:
      "ACCESS_REFUSED: read access to queue 'shipments.dlq' in vhost 'shop' refused for user 'redrive'",
  })
}

/** Answers every request of the API in this way. */
const answer = (
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

const PICTURES: readonly Picture[] = [
  {
    name: 'overview-calm',
    async open(page) {
      await page.goto(calm.url)
      await page.getByText('No open dead letters.').waitFor()
    },
  },
  {
    name: 'overview-bad',
    async open(page) {
      await checkSources()
      await page.goto(bad.url)
      await page.getByRole('article').nth(2).waitFor()
    },
  },
  {
    // docs/images/console.png, as users see it after they signed in.
    name: 'readme',
    async open(page) {
      await checkSources()
      await page.goto(bad.url)
      await page.getByRole('article').nth(2).waitFor()
      const bar = page.getByRole('complementary', { name: 'Connection and session' })
      await bar.evaluate((element) => element.remove())
    },
  },
  {
    name: 'overview-error',
    async open(page) {
      await answer(page, 503, 'unavailable')
      await page.goto(bad.url)
      await page.getByText('Cannot load the overview.').waitFor()
    },
  },
  {
    name: 'groups',
    async open(page) {
      await page.goto(`${bad.url}/groups`)
      await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor()
      await page.keyboard.press('j')
      await page.keyboard.press('x')
    },
  },
  {
    name: 'groups-sections',
    async open(page) {
      await page.goto(`${bad.url}/groups?by=source`)
      await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor()
    },
  },
  {
    name: 'groups-none',
    async open(page) {
      await page.goto(`${bad.url}/groups?q=class%3Aunknown`)
      await page.getByText('No group matches.').waitFor()
    },
  },
  {
    name: 'groups-error',
    async open(page) {
      await answer(page, 503, 'unavailable')
      await page.goto(`${bad.url}/groups`)
      await page.getByText('Cannot load groups.').waitFor()
    },
  },
  {
    name: 'group',
    async open(page) {
      await page.goto(`${bad.url}/groups/${group}`)
      await page.getByRole('cell', { name: 'order-419' }).waitFor()
    },
  },
  {
    name: 'group-why',
    async open(page) {
      await page.goto(`${bad.url}/groups/${group}?tab=why&range=24h`)
      await page.getByText('these facts are equal').waitFor()
    },
  },
  {
    name: 'group-discard',
    async open(page) {
      await page.goto(`${bad.url}/groups/${group}`)
      await page.getByRole('cell', { name: 'order-419' }).waitFor()
      await page.keyboard.press('d')
      await page.getByRole('dialog', { name: 'Discard 420 messages' }).waitFor()
    },
  },
  {
    name: 'messages',
    async open(page) {
      await page.goto(`${bad.url}/messages?q=source%3Apayments`)
      await page.getByRole('link', { name: 'order-179', exact: true }).waitFor()
      await page.keyboard.press('j')
    },
  },
  {
    name: 'messages-selected',
    async open(page) {
      await page.goto(`${bad.url}/messages`)
      await page.getByRole('checkbox', { name: 'Select order-179', exact: true }).first().check()
      await page.getByText('1 message selected').waitFor()
    },
  },
  {
    name: 'messages-none',
    async open(page) {
      await page.goto(`${bad.url}/messages?q=class%3Aunknown`)
      await page.getByText('No message matches.').waitFor()
    },
  },
  {
    name: 'messages-error',
    async open(page) {
      await answer(page, 503, 'unavailable')
      await page.goto(`${bad.url}/messages`)
      await page.getByText('Cannot load messages.').waitFor()
    },
  },
  {
    name: 'message',
    async open(page) {
      await page.goto(`${bad.url}/messages?q=source%3Apayments`)
      await page.getByRole('link', { name: 'order-179', exact: true }).click()
      await page.getByText('2 values masked').waitFor()
      await page.getByRole('button', { name: 'Next message' }).waitFor()
    },
  },
  {
    name: 'message-revealed',
    async open(page) {
      await page.goto(`${bad.url}/messages?q=source%3Apayments`)
      await page.getByRole('link', { name: 'order-179', exact: true }).click()
      await page.getByRole('button', { name: 'Reveal…' }).click()
      await page.getByRole('textbox', { name: 'Reason' }).fill('Ticket 4411')
      await page
        .getByRole('dialog')
        .getByRole('button', { name: /^Reveal/ })
        .click()
      await page.getByText('"5500000000000004"').waitFor()
    },
  },
  {
    name: 'plan',
    async open(page) {
      await page.goto(`${bad.url}/replays/new?group=${group}`)
      await page.getByRole('row', { name: /Ready 420/ }).waitFor()
      await page.getByRole('link', { name: 'order-0', exact: true }).waitFor()
    },
  },
  {
    name: 'plan-select',
    async open(page) {
      await page.goto(`${bad.url}/replays/new?q=source%3Apayments+after%3A24h`)
      await page.getByRole('link', { name: 'order-179', exact: true }).waitFor()
    },
  },
  {
    name: 'policy',
    async open(page) {
      await page.goto(`${bad.url}/sources/orders/policy`)
      await page.getByText('The textbook policy reaches').waitFor({ timeout: 60_000 })
    },
  },
  {
    name: 'policy-invalid',
    async open(page) {
      await page.goto(`${bad.url}/sources/orders/policy?policy=%7B%22retry%22%3A1%7D`)
      await page.getByText('Cannot simulate this policy.').waitFor()
    },
  },
  {
    name: 'run-running',
    async open(page) {
      await page.goto(`${bad.url}/replays/${running}`)
      await page.getByRole('button', { name: 'Pause p' }).waitFor()
    },
  },
  {
    name: 'run-paused',
    async open(page) {
      // Its planner is not a user of this server, so its approval has ended.
      await page.goto(`${bad.url}/replays/${paused}`)
      await page.getByRole('button', { name: 'Approve again and resume' }).waitFor()
    },
  },
  {
    name: 'replays',
    async open(page) {
      await page.goto(`${bad.url}/replays`)
      await page.getByText('Active').nth(1).waitFor()
    },
  },
  {
    name: 'approvals',
    async open(page) {
      await page.goto(`${bad.url}/approvals?run=${waiting}`)
      await page.getByRole('button', { name: /^Approve/ }).waitFor()
    },
  },
  {
    name: 'edit',
    async open(page) {
      await page.goto(`${bad.url}/messages?q=source%3Apayments`)
      await page.getByRole('link', { name: 'order-179', exact: true }).click()
      await page.getByRole('link', { name: 'Edit and replay…' }).click()
      await page.getByRole('textbox', { name: 'Reason' }).fill('Ticket 4411')
      await page
        .getByRole('dialog')
        .getByRole('button', { name: /^Reveal/ })
        .click()
      await page.getByRole('textbox', { name: 'Body', exact: true }).waitFor()
    },
  },
  {
    name: 'sources',
    async open(page) {
      await checkSources()
      await page.goto(`${bad.url}/sources?source=orders`)
      await page.getByText('Nothing has expired.').waitFor()
    },
  },
  {
    name: 'sources-empty',
    async open(page) {
      await page.goto(`${calm.url}/sources`)
      await page.getByText('No source yet.').waitFor()
    },
  },
  {
    name: 'sources-error',
    async open(page) {
      await answer(page, 503, 'unavailable', 'sources,overview')
      await page.goto(`${bad.url}/sources`)
      await page.getByText('Cannot load sources.').waitFor()
    },
  },
  {
    name: 'set-aside',
    async open(page) {
      await page.goto(`${bad.url}/sources/set-aside`)
      await page.getByText('3 messages were set aside').waitFor()
      await page.locator('.set-aside-ask').waitFor({ state: 'attached' })
      await page.keyboard.press('x')
    },
  },
  {
    name: 'set-aside-message',
    async open(page) {
      await page.goto(`${bad.url}/sources/set-aside?entry=${aside}`)
      await page.getByRole('button', { name: 'Show bytes…' }).click()
      await page.getByRole('textbox', { name: 'Reason' }).fill('ticket 7')
      await page.getByRole('button', { name: 'Show', exact: true }).click()
      await page.getByRole('radio', { name: 'Hex' }).click()
      await page.getByRole('region', { name: 'Bytes: hex' }).waitFor()
    },
  },
  {
    name: 'set-aside-replay',
    async open(page) {
      await page.goto(`${bad.url}/sources/set-aside?entry=${aside}`)
      await page.getByRole('button', { name: 'Request replay…' }).click()
      await page.getByRole('dialog').waitFor()
    },
  },
  {
    name: 'set-aside-empty',
    async open(page) {
      await page.goto(`${calm.url}/sources/set-aside`)
      await page.getByText('Nothing to decide.').waitFor()
    },
  },
  {
    name: 'audit',
    async open(page) {
      await page.goto(`${bad.url}/audit`)
      await page.getByText('Denied').first().waitFor()
      await page.getByRole('button', { name: 'Create token' }).first().click()
      await page.getByText('Previous').waitFor()
    },
  },
  {
    name: 'audit-error',
    async open(page) {
      await answer(page, 503, 'unavailable', 'audit')
      await page.goto(`${bad.url}/audit`)
      await page.getByText('Cannot load the audit log.').waitFor()
    },
  },
  {
    name: 'audit-none',
    async open(page) {
      await page.goto(`${bad.url}/audit?q=source%3Anothing`)
      await page.getByText('No entry matches.').waitFor()
    },
  },
  {
    name: 'settings-tokens',
    async open(page) {
      await page.goto(`${bad.url}/settings/tokens`)
      await page.getByRole('button', { name: 'Revoke… laptop' }).waitFor()
      await page.getByRole('textbox', { name: 'Name' }).fill('nightly-report')
    },
  },
  {
    name: 'settings-people',
    async open(page) {
      await page.goto(`${bad.url}/settings/people?person=development`)
      await page.getByRole('button', { name: 'Revoke… laptop' }).waitFor()
    },
  },
  {
    name: 'settings-fingerprints',
    async open(page) {
      await page.goto(`${bad.url}/settings/fingerprints?text=invoice&group=paid+invoices`)
      await page.getByText('"lock timeout"').waitFor()
      await page.getByRole('button', { name: 'Dry run' }).last().click()
      await page.getByText(/open dead letters would move/).waitFor()
    },
  },
  {
    name: 'settings-masks',
    async open(page) {
      await page.goto(`${bad.url}/settings/masks`)
      await page.getByText('/card/number').waitFor()
    },
  },
  {
    name: 'settings-tokens-error',
    async open(page) {
      await answer(page, 503, 'unavailable', 'tokens')
      await page.goto(`${bad.url}/settings/tokens`)
      await page.getByText('Cannot load tokens.').waitFor()
    },
  },
  {
    name: 'settings-empty',
    async open(page) {
      await page.goto(`${calm.url}/settings/fingerprints`)
      await page.getByText('The config has no rule.').waitFor()
    },
  },
  {
    name: 'offline',
    async open(page) {
      await page.goto(bad.url)
      await page.getByRole('article').nth(2).waitFor()
      await page.context().setOffline(true)
      await page.getByText(/^No connection to the server for/).waitFor()
    },
  },
]

const LOOKS = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [WIDE, NARROW].map((viewport) => ({ colorScheme, viewport })),
)

for (const { name, open } of PICTURES) {
  test.for(LOOKS)(`a picture of ${name}: $colorScheme $viewport.width`, async (look) => {
    const { page, close } = await openTab(browser, look)
    await open(page)
    const file = `${FOLDER}/${name}-${look.viewport.width}-${look.colorScheme}.png`
    await page.screenshot({ path: file, fullPage: look.viewport === NARROW })
    await expectAccessible(page, name)
    await expectNoSidewaysScroll(page, name)
    expect(await page.title()).toContain('Redrive')
    await close()
  })
}
