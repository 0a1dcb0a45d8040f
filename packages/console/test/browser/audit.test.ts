import { type Client, createClient } from '@redrive/api'
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
let client: Client
let group: string
/** More than the first page has. */
const COMMENTS = 110

beforeAll(async () => {
  browser = await launch()
  stage = await openStage('redrive_console_audit')
  client = createClient({ url: stage.url })
  group = await seed(stage.catalog, {
    ...{ source: 'orders', class: 'business', message: 'invoice is paid' },
    times: [Date.now()],
  })
  // Together, because the server writes concurrent entries with one disk sync.
  await Promise.all(
    Array.from({ length: COMMENTS }, (_, at) =>
      client.call('commentGroup', { params: { id: group }, body: { text: `Comment ${at}` } }),
    ),
  )
  // The first test expects that this is refused, and the last request denied.
  await client.call('revokeToken', { params: { id: group } }).catch(() => undefined)
  const { secret } = await client.call('createToken', {
    body: { name: 'laptop', actions: ['view'], sources: ['orders'], days: 1 },
  })
  const weak = createClient({ url: stage.url, token: secret })
  await weak.call('listAudit', {}).catch(() => undefined)
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

test('each action is one row with its result, and the address has the open one', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(`${stage.url}/audit`)
  const rows = page.locator('.audit-table tbody tr')
  await page.getByText('Denied').first().waitFor()
  const first = (await rows.nth(0).textContent()) ?? ''
  expect(first).toContain('List audit')
  expect(first).toContain('token')
  expect(first).toContain('needs configure')
  expect(await rows.nth(1).textContent()).toMatch(/Create token.*Done/)
  expect(await rows.nth(2).textContent()).toMatch(/Revoke token.*Refused/)
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.waitForURL(/entry=\d+/)
  await page.getByText(/"token": "laptop"/).waitFor()
  const entry = new URL(page.url()).searchParams.get('entry')
  const { rows: stored } = await stage.pool.query(
    `select encode(hash, 'hex') as hash from redrive_server.audit where sequence = $1`,
    [entry],
  )
  await page.getByText(String((stored[0] as { hash: string }).hash)).waitFor()
  await page.getByText(/^entry [\d,]+, \d+ ms before$/).waitFor()
  await page.reload()
  await page.getByText(/"token": "laptop"/).waitFor()
  await page.keyboard.press('Escape')
  await page.getByText(/"token": "laptop"/).waitFor({ state: 'detached' })
  expect(messages).toEqual([])
  await close()
})

test('older entries follow, and the filter finds those of a subject', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/audit`)
  const comments = page.getByRole('button', { name: 'Comment group' })
  await comments.first().waitFor()
  await page.getByText(/^\d+\+ actions$/).waitFor()
  const before = await comments.count()
  expect(before).toBeLessThan(COMMENTS)
  const older = page.getByRole('button', { name: 'Older' })
  await older.click()
  await older.click()
  await page.getByText(/^\d+ actions$/).waitFor()
  expect(await comments.count()).toBe(COMMENTS)
  await page.keyboard.press('/')
  await page.keyboard.type('operation:revokeToken')
  await page.keyboard.press('Enter')
  await comments.first().waitFor({ state: 'detached' })
  await page.getByText("redrive audit list --operation 'revokeToken'").waitFor()
  await page.goto(`${stage.url}/audit?q=subject%3A${group}`)
  await comments.first().click()
  await page.getByRole('link', { name: group }).click()
  await page.waitForURL(`${stage.url}/groups/${group}`)
  await close()
})

test('the log is verified outside of the server', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/audit`)
  await page.getByRole('button', { name: 'Verify…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Verify the audit log' })
  expect(await dialog.getByRole('code').textContent()).toMatch(/^redrive audit verify/)
  await expectAccessible(page, 'verify')
  await close()
})

test('a filter that cannot be read, and one without a match, are reported', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/audit?q=outcome%3Adone`)
  await page
    .getByRole('alert')
    .getByText(/The filter accepts the fields/)
    .waitFor()
  await page.goto(`${stage.url}/audit?q=source%3Anothing`)
  await page.getByText('No entry matches.').waitFor()
  await page.getByRole('button', { name: 'Clear the filter' }).click()
  await page.waitForURL(`${stage.url}/audit`)
  expect(await page.getByText('No entry matches.').count()).toBe(0)
  await close()
})

test.for([
  ['light', WIDE],
  ['dark', NARROW],
] as const)('has no accessibility problem: %s, %o', async ([colorScheme, viewport]) => {
  const { page, messages, close } = await openTab(browser, { colorScheme, viewport })
  await page.goto(`${stage.url}/audit`)
  await page.getByText('Denied').first().waitFor()
  await page.keyboard.press('j')
  await page.getByText('Previous').waitFor()
  await expectAccessible(page, 'audit')
  await expectNoSidewaysScroll(page, 'audit')
  expect(messages).toEqual([])
  await close()
})
