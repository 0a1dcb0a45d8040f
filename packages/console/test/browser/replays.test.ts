import type { Browser, Page } from 'playwright-core'
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
/** One person may plan and approve here. */
let alone: Stage
/** Another person must approve here. */
let shared: Stage
const MINUTE_MS = 60_000
const many = (count: number, ageMs: number) =>
  Array.from({ length: count }, (_, at) => Date.now() - ageMs - at * 1_000)

const orders = (stage: Stage, message: string, count = 120) =>
  seed(stage.catalog, {
    ...{ source: 'orders', class: 'transient', code: 'ECONNREFUSED', message },
    times: many(count, 6 * MINUTE_MS),
  })

beforeAll(async () => {
  browser = await launch()
  alone = await openStage('redrive_console_replays', {
    config: { approval: 'anyone' },
  })
  shared = await openStage('redrive_console_approvals')
})
afterAll(async () => {
  await browser?.close()
  await alone?.end()
  await shared?.end()
})

const runsOf = async (stage: Stage) =>
  (await stage.catalog.replays.runs({ limit: 200 })).runs.map(({ id, state, options, note }) => ({
    ...{ id, state, note, rate: options.ratePerSecond },
  }))
const idOf = (page: Page) => new URL(page.url()).pathname.split('/').at(-1) ?? ''
const stateOf = async (stage: Stage, id: string) => (await stage.catalog.replays.run(id))?.state

test('a group is planned, changed, started, paused, resumed and cancelled, by keyboard alone', async () => {
  const { page, messages, close } = await openTab(browser)
  const group = await orders(alone, 'connect ECONNREFUSED payments-api')
  await page.goto(`${alone.url}/groups/${group}`)
  await page.getByRole('heading', { name: /ECONNREFUSED/, level: 1 }).waitFor()
  await page.keyboard.press('r')
  await page.getByRole('heading', { name: 'Replay 120 to orders', level: 1 }).waitFor()
  await page.waitForURL(/\/replays\/[0-9a-f-]{36}$/)
  const first = idOf(page)
  await page.getByRole('row', { name: /Ready 120/ }).waitFor()
  await page.getByRole('link', { name: 'order-119', exact: true }).waitFor()
  await expectAccessible(page, 'plan')
  const start = page.getByRole('button', { name: /^Start replay of 120/ })
  await page.getByLabel('Rate').fill('0')
  await page.getByText('Enter a number from 0.1 to 10,000.').waitFor()
  const update = page.getByRole('button', { name: /^Update plan/ })
  expect(await update.getAttribute('aria-disabled')).toBe('true')
  await page.getByLabel('Rate').fill('0.5')
  await page.getByLabel('Note for the approver').fill('Rolled back at 02:57')
  expect(await start.getAttribute('aria-disabled')).toBe('true')
  // A reload loses nothing that was typed.
  await page.reload()
  await page.getByLabel('Rate').waitFor()
  expect(await page.getByLabel('Note for the approver').inputValue()).toBe('Rolled back at 02:57')
  await update.press('Enter')
  await page.waitForURL((url) => !url.pathname.endsWith(first))
  await page.getByText('0.5\u00a0per second', { exact: false }).first().waitFor()
  const second = idOf(page)
  expect(await stateOf(alone, first)).toBe('cancelled')
  expect(await runsOf(alone)).toContainEqual({
    ...{ id: second, state: 'planned', note: 'Rolled back at 02:57', rate: 0.5 },
  })
  await start.press('Enter')
  await page.getByRole('button', { name: 'Pause p' }).waitFor()
  expect(await stateOf(alone, second)).toBe('running')
  await expectAccessible(page, 'run')
  // The key of the page, outside of any field.
  await page.getByRole('heading', { name: 'Replay 120 to orders', level: 1 }).click()
  await page.keyboard.press('p')
  await page.getByRole('button', { name: 'Resume…' }).press('Enter')
  expect(await stateOf(alone, second)).toBe('paused')
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Resume 120/ })
    .press('Enter')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Cancel…' }).press('Enter')
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Cancel 120/ })
    .press('Enter')
  await page.getByText(/^cancelled after/).waitFor()
  expect(await stateOf(alone, second)).toBe('cancelled')
  // The plan and its update replaced each other in the history, so going back does not plan again.
  const before = (await runsOf(alone)).length
  await page.goBack()
  await page.waitForURL(`${alone.url}/groups/${group}`)
  expect((await runsOf(alone)).length).toBe(before)
  expect(messages).toEqual([])
  await close()
})

test('a double click starts a run once, and a filter is shown before it is planned', async () => {
  const { page, close } = await openTab(browser)
  await orders(alone, 'socket hang up', 3)
  await page.goto(`${alone.url}/messages?q=source%3Aorders+%22hang+up%22`)
  await page.getByRole('link', { name: 'Replay all that match…' }).click()
  await page.getByRole('heading', { name: 'Replay 3 messages to orders', level: 1 }).waitFor()
  const before = (await runsOf(alone)).length
  await page.getByRole('button', { name: 'Preview' }).dblclick()
  await page.getByRole('row', { name: /Ready 3/ }).waitFor()
  expect((await runsOf(alone)).length).toBe(before + 1)
  await page.getByRole('button', { name: /^Start replay of 3/ }).dblclick()
  await page.getByRole('button', { name: 'Pause p' }).waitFor()
  expect(await stateOf(alone, idOf(page))).toBe('running')
  await page.goto(`${alone.url}/replays`)
  await page.getByRole('link', { name: 'Replay 3 to orders' }).waitFor()
  await expectAccessible(page, 'replays')
  await close()
})

test('one of several skipped messages is included with an override', async () => {
  const { page, close } = await openTab(browser)
  await seed(alone.catalog, {
    ...{ source: 'old', class: 'transient', message: 'an old problem' },
    times: [Date.now() - 30 * 60 * MINUTE_MS, Date.now() - MINUTE_MS],
  })
  await page.goto(`${alone.url}/replays/new?q=source%3Aold+after%3A7d`)
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.getByRole('row', { name: /Too old 1/ }).waitFor()
  await page.getByRole('button', { name: 'Include 1…' }).click()
  await page.getByRole('button', { name: /^Update plan/ }).click()
  await page.getByRole('row', { name: /Ready 2/ }).waitFor()
  expect(await page.getByRole('row', { name: /Too old/ }).count()).toBe(0)
  await close()
})

test('a body is edited, and the plan has the new one', async () => {
  const { page, messages, close } = await openTab(browser)
  await seed(alone.catalog, {
    ...{ source: 'payments', class: 'schema', message: 'expected string at /currency' },
    times: [Date.now()],
    body: { id: 'pay_1', amount: 5 },
  })
  await page.goto(`${alone.url}/messages?q=source%3Apayments`)
  await page.getByRole('link', { name: 'order-0', exact: true }).click()
  await page.getByRole('link', { name: 'Edit and replay…' }).click()
  await page.getByRole('textbox', { name: 'Reason' }).fill('Ticket 4411')
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Reveal/ })
    .click()
  const body = page.getByRole('textbox', { name: 'Body', exact: true })
  await body.fill('{ "id": "pay_1", ')
  await page.getByText(/^Not JSON/).waitFor()
  await body.fill('{ "id": "pay_1", "amount": 5, "currency": "EUR" }')
  await page.getByLabel('Why the body is changed').fill('Add the currency')
  await expectAccessible(page, 'edit')
  await page.getByRole('button', { name: 'Preview' }).click()
  await page.getByRole('heading', { name: 'Repair and replay 1 to payments', level: 1 }).waitFor()
  const change = await alone.catalog.replays.change(idOf(page))
  expect(
    JSON.parse(String(change !== undefined && 'edit' in change ? Buffer.from(change.edit) : '')),
  ).toEqual({
    ...{ id: 'pay_1', amount: 5, currency: 'EUR' },
  })
  expect(messages).toEqual([])
  await close()
})

test('a patch that does not fit is counted before anything happens', async () => {
  const { page, close } = await openTab(browser)
  const group = await orders(alone, 'expected string at /currency', 2)
  await page.goto(`${alone.url}/replays/new?group=${group}`)
  await page.getByRole('button', { name: 'Add a patch…' }).click()
  const patch = page.getByLabel('JSON Patch for each body')
  await patch.fill('[{ "op": "copy", "from": "/merchant", "path": "/currency" }]')
  await page.getByRole('button', { name: /^Update plan/ }).click()
  await page.getByRole('row', { name: /Patch does not fit 2/ }).waitFor()
  const start = page.getByRole('button', { name: /^Start replay/ })
  expect(await start.getAttribute('aria-disabled')).toBe('true')
  await patch.fill('[{ "op": "add", "path": "/currency", "value": "EUR" }]')
  await page.getByRole('button', { name: /^Update plan/ }).click()
  await page.getByRole('row', { name: /Ready 2/ }).waitFor()
  await page.getByRole('button', { name: 'Show the change' }).click()
  await page.locator('[data-token=string]', { hasText: '"EUR"' }).waitFor()
  await close()
})

test('the planner cannot approve, and copies the link', async () => {
  const { page, messages, close } = await openTab(browser, {
    permissions: ['clipboard-write', 'clipboard-read'],
  })
  const group = await orders(shared, 'connect ECONNREFUSED payments-api')
  await page.goto(`${shared.url}/replays/new?group=${group}`)
  await page.getByText('Another person must approve it.').waitFor()
  expect(await page.getByRole('button', { name: /^(Start|Approve)/ }).count()).toBe(0)
  await page.getByRole('button', { name: 'Copy link for an approver' }).click()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(page.url())
  await page.goto(`${shared.url}/approvals`)
  await page.getByText('You planned this. Another person approves.').waitFor()
  expect(await page.getByRole('button', { name: /^Approve/ }).count()).toBe(0)
  await expectAccessible(page, 'approvals')
  // A plan of another person can be approved, with the hash that is shown.
  const planned = await shared.catalog.replays.plan({ selection: { group }, by: 'ben' })
  await page.goto(`${shared.url}/approvals?run=${planned.id}`)
  await page.getByRole('button', { name: /^Approve 120/ }).click()
  await page.getByRole('link', { name: 'Open the run' }).waitFor()
  expect(await stateOf(shared, planned.id)).toBe('running')
  expect(messages).toEqual([])
  await close()
})

test('an expired plan cannot be approved', async () => {
  const { page, messages, close } = await openTab(browser)
  const group = await orders(shared, 'a plan that expires', 4)
  const { id } = await shared.catalog.replays.plan({ selection: { group }, by: 'ben' })
  const approve = page.getByRole('button', { name: /^Approve 4/ })
  await page.goto(`${shared.url}/replays/${id}`)
  await approve.waitFor()
  expect(await approve.getAttribute('aria-disabled')).toBeNull()
  await shared.pool.query(
    `update redrive_catalog.replay_run set planned_at = planned_at - interval '61 minutes' where id = $1`,
    [id],
  )
  await page.reload()
  await approve.waitFor()
  expect(await approve.getAttribute('aria-disabled')).toBe('true')
  expect(await approve.getAttribute('title')).toBe('The plan has expired. Plan again.')
  expect(messages).toEqual([])
  await close()
})

test('a plan that was replaced is not chosen again, and its link leads to the new one', async () => {
  const { page, messages, close } = await openTab(browser)
  const { replays } = shared.catalog
  const group = await orders(shared, 'a plan that is updated', 7)
  const old = await replays.plan({ selection: { group }, by: 'cleo' })
  await page.goto(`${shared.url}/approvals`)
  await page.waitForURL(/run=/)
  await page.getByRole('link', { name: 'Sources' }).click()
  await page.getByRole('heading', { name: 'Sources', level: 1 }).waitFor()
  // As an update of the plan: the new one is made, then the old one is withdrawn.
  const next = await replays.plan({ selection: { group }, by: 'cleo', ratePerSecond: 7 })
  await replays.cancel(old.id, { by: 'cleo' })
  await page.getByRole('link', { name: /^Approvals/ }).click()
  await page.waitForURL(/run=/)
  expect(page.url()).toContain(next.id)
  await page.goto(`${shared.url}/approvals?run=${old.id}`)
  await page.getByText('This plan was replaced.').waitFor()
  await expectAccessible(page, 'replaced plan')
  await page.getByRole('link', { name: 'Show the new plan' }).click()
  await page.getByRole('button', { name: /^Approve 7/ }).waitFor()
  expect(page.url()).toContain(next.id)
  expect(messages).toEqual([])
  await close()
})

test.for([
  ['light', WIDE],
  ['dark', NARROW],
] as const)('has no accessibility problem: %s, %o', async ([colorScheme, viewport]) => {
  const { page, messages, close } = await openTab(browser, { colorScheme, viewport })
  const group = await orders(shared, `a problem in ${colorScheme}`, 5)
  await page.goto(`${shared.url}/replays/new?group=${group}`)
  await page.getByRole('row', { name: /Ready 5/ }).waitFor()
  for (const [path, name] of [
    [new URL(page.url()).pathname, 'plan'],
    ['/replays', 'replays'],
    ['/approvals', 'approvals'],
    [`/replays/new?q=group%3A${group}`, 'select'],
  ] as const) {
    await page.goto(shared.url + path)
    await page
      .getByText(/orders/)
      .first()
      .waitFor()
    await expectAccessible(page, `${name} ${colorScheme}`)
    await expectNoSidewaysScroll(page, `${name} ${colorScheme}`)
  }
  expect(messages).toEqual([])
  await close()
})
