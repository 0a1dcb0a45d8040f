import { mkdirSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROOT } from '@redrive/dev-support'
import {
  expectAccessible,
  expectNoSidewaysScroll,
  launch,
  NARROW,
  openTab,
  WIDE,
} from './browser.ts'
import { openStage, seed, type Stage } from './stage.ts'

const FOLDER = `${ROOT}.reports/console`
const MINUTE_MS = 60_000
const spread = (count: number, from: number, to: number) =>
  Array.from(
    { length: count },
    (_, at) => Date.now() - (from - ((from - to) * at) / count) * MINUTE_MS,
  )

let browser: Browser
let calm: Stage
let bad: Stage
let group: string
/** Runs in three states. */
let running: string
let paused: string
let waiting: string

beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true })
  browser = await launch()
  calm = await openStage('redrive_console_pictures_calm')
  const source = { rabbitmq: { url: 'amqp://127.0.0.1:1', queue: 'payments' } }
  const payments = { ...source, mask: ['/card/number', '/customer/email'] }
  bad = await openStage('redrive_console_pictures_bad', { sources: { payments } })
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

afterAll(async () => {
  await browser?.close()
  await calm?.end()
  await bad?.end()
})

interface Picture {
  readonly name: string
  readonly open: (page: Page) => Promise<void>
}

/** Answers every request of the API in this way. */
const answer = (page: Page, status: number, code: string) =>
  page.route('**/api/v1/{overview,groups,groups/**,dead-letters,dead-letters/**}**', (route) =>
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
      await page.goto(bad.url)
      await page.getByRole('article').nth(2).waitFor()
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
    name: 'run-running',
    async open(page) {
      await page.goto(`${bad.url}/replays/${running}`)
      await page.getByRole('button', { name: 'Pause p' }).waitFor()
    },
  },
  {
    name: 'run-paused',
    async open(page) {
      await page.goto(`${bad.url}/replays/${paused}`)
      await page.getByRole('button', { name: 'Resume…' }).waitFor()
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
