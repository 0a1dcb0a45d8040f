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
import { checkSource, openStage, seed, setOneAside, type Stage } from './stage.ts'

let browser: Browser
let stage: Stage
const statusOf = async (id: string) => (await stage.catalog.setAside.get(id))?.status
const setAsideUrl = (id: string) => `${stage.url}/sources/set-aside?entry=${id}`

/** A check counts for a minute, and tests may run longer. */
const checkAll = async () => {
  await checkSource(stage.catalog, 'orders', { depth: 3, lag: 140 })
  await checkSource(stage.catalog, 'refunds', { unreachable: 'ACCESS_REFUSED for user redrive' })
}

beforeAll(async () => {
  browser = await launch()
  stage = await openStage('redrive_console_sources')
  for (const source of ['orders', 'refunds', 'events']) {
    await seed(stage.catalog, {
      ...{ source, class: 'business', message: `invoice of ${source} is paid` },
      times: Array.from({ length: source === 'orders' ? 5 : 1 }, () => Date.now() - 60_000),
    })
  }
  await checkAll()
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

test('a source that is not ingested is first, with the reason; the address has the chosen source', async () => {
  const { page, messages, close } = await openTab(browser)
  await checkAll()
  await page.goto(`${stage.url}/sources`)
  await page.getByText('Ingest of refunds stopped.').waitFor()
  await page.getByText(/ACCESS_REFUSED for user redrive/).waitFor()
  await page.getByText(/1\ssource is not checked: events\./).waitFor()
  const names = await page.locator('.sources-table tbody a.strong').allTextContents()
  expect(names).toEqual(['refunds', 'events', 'orders'])
  await page.keyboard.press('j')
  await page.waitForURL(`${stage.url}/sources?source=refunds`)
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.waitForURL(`${stage.url}/sources?source=orders`)
  await page.getByRole('region', { name: 'Server processes' }).getByText('ingest-1:4711').waitFor()
  await page.reload()
  await page.getByRole('link', { name: 'Open its groups' }).click()
  await page.waitForURL(`${stage.url}/groups?q=source%3Aorders`)
  expect(messages).toEqual([])
  await close()
})

test('an unknown source is named', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/sources?source=gone`)
  const note = page.getByText(/There is no source gone/)
  await note.waitFor()
  expect(await page.getByText('Server processes').count()).toBe(0)
  await close()
})

test('a replay of a set-aside message is requested by keyboard, and not approved by the same person', async () => {
  const id = await setOneAside(stage.catalog, 'orders')
  const { page, messages, close } = await openTab(browser)
  await page.goto(setAsideUrl(id))
  await page.getByRole('heading', { name: 'Body is too large' }).waitFor()
  await page.keyboard.press('r')
  const dialog = page.getByRole('dialog', { name: 'Request replay of 1 message' })
  await dialog.getByLabel(/Leave out these headers/).fill('x-death, x-stack')
  await dialog.getByText(`redrive set-aside replay ${id} --without-header 'x-death'`).waitFor()
  await expectAccessible(page, 'request dialog')
  await dialog.getByRole('button', { name: 'Request replay of 1 message' }).press('Enter')
  await page.getByText('You requested this replay. Another person approves it.').waitFor()
  expect(await stage.catalog.setAside.get(id)).toMatchObject({
    status: 'requested',
    withoutHeaders: ['x-death', 'x-stack'],
  })
  expect(await page.getByRole('button', { name: 'Approve replay…' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Withdraw request…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Reopen 1 message' }).click()
  await page.getByRole('button', { name: 'Request replay…' }).waitFor()
  expect(await statusOf(id)).toBe('open')
  expect(messages).toEqual([])
  await close()
})

test('the request of another person is approved once', async () => {
  const id = await setOneAside(stage.catalog, 'orders')
  await stage.catalog.setAside.requestReplay([id], { by: 'ben' })
  const { page, close } = await openTab(browser)
  await page.goto(setAsideUrl(id))
  await page.getByText('ben', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Approve replay…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Approve replay of 1 message' })
  await dialog.getByRole('button', { name: 'Approve replay of 1 message' }).dblclick()
  await dialog.waitFor({ state: 'detached' })
  expect(await statusOf(id)).toBe('replaying')
  const approvals = await stage.pool.query(
    `select outcome from redrive_server.audit where operation = 'approveSetAside' and subject = $1`,
    [id],
  )
  expect(approvals.rows.map(({ outcome }) => outcome as string)).toEqual(['requested', 'done'])
  await close()
})

test('several messages are discarded together, and reopened', async () => {
  const ids = [
    await setOneAside(stage.catalog, 'payments'),
    await setOneAside(stage.catalog, 'payments', { body: { order: 2 } }),
  ]
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/sources/set-aside?q=source%3Apayments`)
  await page.getByRole('heading', { name: '2 set-aside messages match' }).waitFor()
  await page.keyboard.press('Shift+A')
  await page.getByText('2 messages selected').waitFor()
  await page.getByRole('button', { name: 'Discard 2…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Discard 2 messages' })
  await dialog.getByRole('button', { name: 'Discard 2 messages' }).click()
  await page.getByText('No message matches.').waitFor()
  expect(await Promise.all(ids.map(statusOf))).toEqual(['discarded', 'discarded'])
  await page.goto(`${stage.url}/sources/set-aside?q=source%3Apayments+status%3Adiscarded`)
  await page.getByRole('button', { name: 'Reopen…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Reopen 1 message' }).click()
  await page.getByRole('heading', { name: '1 set-aside message matches' }).waitFor()
  expect(new Set(await Promise.all(ids.map(statusOf)))).toEqual(new Set(['discarded', 'open']))
  await close()
})

test('bytes need a reason, which the audit log has, and are shown as text', async () => {
  const body = { html: '<img src=x onerror=alert(1)>', bidi: 'abc\u202Egnp' }
  const id = await setOneAside(stage.catalog, 'orders', { body, headers: { trace: 'tr-7' } })
  const { page, messages, close } = await openTab(browser)
  await page.goto(setAsideUrl(id))
  await page.getByRole('button', { name: 'Show bytes…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Show body and headers' })
  const show = dialog.getByRole('button', { name: /^Show/ })
  expect(await show.getAttribute('aria-disabled')).toBe('true')
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('ticket 7')
  await show.click()
  const bytes = page.getByRole('region', { name: /^Bytes: / })
  await bytes.getByText('<img src=x onerror=alert(1)>').waitFor()
  await bytes.getByText('abc\\u{202e}gnp').waitFor()
  await page.getByRole('radio', { name: 'Hex' }).click()
  await bytes.getByText(/7b 22 68 74 6d 6c/).waitFor()
  await page.getByRole('radio', { name: 'Headers' }).click()
  await bytes.getByText(/tr-7/).waitFor()
  await expectAccessible(page, 'bytes')
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download the body' }).click()
  expect((await download).suggestedFilename()).toBe(id)
  const { rows } = await stage.pool.query(
    `select outcome, facts::json->>'reason' as reason from redrive_server.audit
     where operation = 'getSetAsidePayload' and subject = $1`,
    [id],
  )
  expect(rows).toEqual([{ outcome: 'viewed', reason: 'ticket 7' }])
  await page.getByRole('button', { name: 'Hide' }).click()
  await bytes.waitFor({ state: 'detached' })
  expect(messages).toEqual([])
  await close()
})

test('an unknown message and a wrong filter are reported', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(setAsideUrl('0190163d-8694-739b-aea5-966c26f8ad91'))
  await page.getByText('Not found, or no permission to view it.').waitFor()
  await page.goto(`${stage.url}/sources/set-aside?q=reason%3Aheaders`)
  const problem = page.getByRole('alert').filter({ hasText: 'The filter accepts the fields' })
  await problem.waitFor()
  expect(await problem.textContent()).toContain('source:orders status:discarded')
  await close()
})

test.for([
  ['light', WIDE],
  ['dark', NARROW],
] as const)('has no accessibility problem: %s, %o', async ([colorScheme, viewport]) => {
  const id = await setOneAside(stage.catalog, 'orders')
  await checkAll()
  const { page, messages, close } = await openTab(browser, { colorScheme, viewport })
  await page.goto(`${stage.url}/sources?source=orders`)
  await page.getByText('Server processes').waitFor()
  await expectAccessible(page, 'sources')
  await expectNoSidewaysScroll(page, 'sources')
  await page.goto(`${stage.url}/sources/set-aside`)
  await page.getByText('Newest first').waitFor()
  await expectAccessible(page, 'set aside')
  await page.goto(setAsideUrl(id))
  await page.getByRole('button', { name: 'Show bytes…' }).waitFor()
  await expectAccessible(page, 'set-aside message')
  await expectNoSidewaysScroll(page, 'set-aside message')
  expect(messages).toEqual([])
  await close()
})
