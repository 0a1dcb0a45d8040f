import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  expectAccessible,
  expectNoSidewaysScroll,
  launch,
  NARROW,
  openTab,
  WIDE,
} from './browser.ts'
import { openStage, seed, type Stage } from './stage.ts'

let browser: Browser
let stage: Stage
const MINUTE_MS = 60_000
const many = (count: number, ageMs: number) =>
  Array.from({ length: count }, (_, at) => Date.now() - ageMs - at * 1_000)

const HOSTILE = '<img src=x onerror=alert(1)> abc\u202Egnp.exe \u0007'

beforeAll(async () => {
  browser = await launch()
  const source = { rabbitmq: { url: 'amqp://127.0.0.1:1', queue: 'orders' } }
  stage = await openStage('redrive_console_messages', {
    config: { sources: { orders: source, payments: { ...source, mask: ['/card/number'] } } },
  })
  await seed(stage.catalog, {
    ...{ source: 'orders', class: 'transient', code: 'ECONNREFUSED' },
    message: 'connect ECONNREFUSED payments-api',
    times: many(250, 6 * MINUTE_MS),
  })
  await seed(stage.catalog, {
    ...{ source: 'payments', class: 'schema', code: 'PAYLOAD_INVALID' },
    message: HOSTILE,
    times: many(3, MINUTE_MS),
    body: { id: 'pay_1', card: { number: '5500000000000004' }, note: HOSTILE },
  })
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

test('the address is the state of the list, and the next pages load while scrolling', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(`${stage.url}/messages?q=source%3Aorders`)
  for (const count of ['100+', '200+']) {
    await page.getByText(`${count} messages`, { exact: true }).first().waitFor()
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
  }
  await page.getByText('250 messages', { exact: true }).first().waitFor()
  // Only the rows near the window exist.
  expect(await page.getByRole('row').count()).toBeLessThan(80)
  await page.getByRole('button', { name: 'Columns' }).click()
  await page.getByRole('menuitemcheckbox', { name: 'Code' }).click()
  await page.waitForURL(/columns=status%2Cwhat%2Ctype%2Ccode/)
  await page.keyboard.press('Escape')
  await page.reload()
  await page.getByRole('columnheader', { name: 'Code' }).waitFor()
  await page.goto(`${stage.url}/messages?q=clas%3Aschema`)
  await page.getByText(/clas/).first().waitFor()
  await page.getByText('The filter cannot be read.').waitFor()
  expect(messages).toEqual([])
  await close()
})

test('a message is opened, walked from and discarded with a reason, by keyboard alone', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(`${stage.url}/messages?q=source%3Aorders`)
  await page.getByRole('link', { name: 'order-0', exact: true }).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: /^order-0 failed: connect/, level: 1 }).waitFor()
  await page.getByRole('button', { name: 'Next message' }).waitFor()
  await page.keyboard.press('j')
  await page.getByRole('heading', { name: /^order-1 failed/, level: 1 }).waitFor()
  await page.getByText('Run 1 failed').waitFor()
  await page.keyboard.press('d')
  const dialog = page.getByRole('dialog', { name: 'Discard 1 message' })
  await dialog.getByLabel('Reason').fill('A test order')
  await expectAccessible(page, 'discard dialog')
  await dialog.getByRole('button', { name: /^Discard 1/ }).press('Enter')
  await page.getByText('Discarded 1: A test order').waitFor()
  await page.getByRole('button', { name: 'Restore…' }).waitFor()
  const { deadLetters } = await stage.catalog.deadLetters({
    sources: ['orders'],
    statuses: ['discarded'],
    after: 0,
  })
  expect(deadLetters.map(({ key }) => key)).toEqual(['order-1'])
  await page.goBack()
  await page.getByRole('link', { name: 'order-0', exact: true }).waitFor()
  expect(await page.getByRole('link', { name: 'order-1', exact: true }).count()).toBe(0)
  expect(messages).toEqual([])
  await close()
})

test('selected messages are discarded together, and restored', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/messages?q=source%3Aorders`)
  await page.getByRole('checkbox', { name: 'Select order-2', exact: true }).check()
  await page
    .getByRole('checkbox', { name: 'Select order-4', exact: true })
    .click({ modifiers: ['Shift'] })
  await page.getByText('3 messages selected').waitFor()
  await page.getByRole('button', { name: 'Discard 3…' }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Discard 3/ })
    .click()
  await page.getByRole('link', { name: 'order-3', exact: true }).waitFor({ state: 'detached' })
  await page.goto(`${stage.url}/messages?q=source%3Aorders+status%3Adiscarded`)
  await page.getByRole('checkbox', { name: 'Select order-3', exact: true }).check()
  await page.getByRole('button', { name: 'Restore 1…' }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Restore 1/ })
    .click()
  await page.getByRole('link', { name: 'order-3', exact: true }).waitFor({ state: 'detached' })
  const { deadLetters } = await stage.catalog.deadLetters({ sources: ['orders'], key: 'order-3' })
  expect(deadLetters[0]?.status).toBe('open')
  await close()
})

test('a masked value is shown only after a reason, which the audit log keeps', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(`${stage.url}/messages?q=source%3Apayments`)
  await page.getByRole('link', { name: 'order-0', exact: true }).click()
  await page.getByText('1 value masked').waitFor()
  expect(await page.content()).not.toContain('5500000000000004')
  // Text of the producer stays text, with its hidden characters visible.
  expect(await page.getByLabel('Body, formatted').textContent()).toContain('abc\\u{202e}gnp.exe')
  await expectAccessible(page, 'message')
  await page.getByRole('button', { name: 'Reveal…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Reveal the body' })
  const confirm = dialog.getByRole('button', { name: /^Reveal the body/ })
  expect(await confirm.getAttribute('aria-disabled')).toBe('true')
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('Ticket 4411')
  await confirm.click()
  await page.getByText('"5500000000000004"').waitFor()
  await page.getByRole('radio', { name: 'Hex' }).click()
  await page.getByText('7b 22 69 64').waitFor()
  await expectAccessible(page, 'revealed')
  const { rows } = await stage.pool.query(
    `select facts::json->>'reason' as reason from redrive_server.audit where operation = 'getPayload'`,
  )
  expect(rows).toContainEqual({ reason: 'Ticket 4411' })
  await page.getByRole('button', { name: 'Hide' }).click()
  await page.getByText('1 value masked').waitFor()
  expect(messages).toEqual([])
  await close()
})

test('new messages do not move rows until they are shown', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/messages?q=source%3Arefunds`)
  await page.getByText('No message matches.').waitFor()
  await seed(stage.catalog, {
    ...{ source: 'refunds', class: 'unknown', message: 'a new problem' },
    times: many(2, 0),
  })
  await page.getByRole('button', { name: '2 new messages. Show' }).click()
  await page.getByRole('link', { name: 'order-1', exact: true }).waitFor()
  expect(await page.getByRole('button', { name: /new messages/ }).count()).toBe(0)
  await close()
})

test.for([
  ['light', WIDE],
  ['dark', NARROW],
] as const)('has no accessibility problem: %s, %o', async ([colorScheme, viewport]) => {
  const { page, messages, close } = await openTab(browser, { colorScheme, viewport })
  await page.goto(`${stage.url}/messages?q=source%3Apayments`)
  await page.getByRole('link', { name: 'order-0', exact: true }).waitFor()
  await expectAccessible(page, 'messages')
  await expectNoSidewaysScroll(page, 'messages')
  await page.getByRole('link', { name: 'order-0', exact: true }).click()
  await page.getByRole('heading', { name: /^order-0/, level: 1 }).waitFor()
  await expectAccessible(page, 'message')
  await expectNoSidewaysScroll(page, 'message')
  expect(messages).toEqual([])
  await close()
})

test('an unknown message is not found', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/messages/0190163d-8694-739b-aea5-966c26f8ad91`)
  await page.getByText('Not found, or no permission to view it.').waitFor()
  expect(await page.title()).toBe('Not found · Redrive')
  await close()
})
