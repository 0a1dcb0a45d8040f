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

beforeAll(async () => {
  browser = await launch()
  stage = await openStage('redrive_console_overview')
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

test('a calm day is calm, and becomes an incident without a reload', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(stage.url)
  await page.getByRole('heading', { name: 'No open dead letters.', level: 1 }).waitFor()
  await page.getByText('npx redrive init').waitFor()
  expect(await page.getByRole('article').count()).toBe(0)
  await expectAccessible(page, 'calm')
  const since = Date.now() - 25 * MINUTE_MS
  await seed(stage.catalog, {
    source: 'orders',
    class: 'transient',
    code: 'ECONNREFUSED',
    message: 'connect ECONNREFUSED payments-api:8080',
    times: Array.from({ length: 120 }, (_, at) => since + at * 9_000),
  })
  await seed(stage.catalog, {
    source: 'payments',
    class: 'schema',
    message: 'expected string <script>alert(1)</script> \u202E at /currency',
    times: Array.from({ length: 30 }, (_, at) => Date.now() - at * MINUTE_MS),
  })
  await page.getByRole('heading', { name: /^150 open dead letters\. 2 groups need/ }).waitFor()
  const [first, second] = await page.getByRole('article').all()
  expect(await first?.textContent()).toMatch(
    /connect ECONNREFUSED payments-api.*Replay\. A transient/,
  )
  expect(await second?.textContent()).toContain('expected string <v> \\u{202e} at /currency')
  expect(await second?.textContent()).toContain('Fix the producer.')
  const replay = page.getByRole('link', { name: 'Replay 120…' })
  expect(await replay.getAttribute('data-kind')).toBe('primary')
  expect(await page.locator('[data-kind=primary]').count()).toBe(1)
  await replay.click()
  await page.getByRole('row', { name: /Ready 120/ }).waitFor()
  expect(messages).toEqual([])
  await close()
})

test.for([
  ['light', WIDE],
  ['dark', NARROW],
] as const)('has no accessibility problem: %s, %o', async ([colorScheme, viewport]) => {
  const { page, messages, close } = await openTab(browser, { colorScheme, viewport })
  await page.goto(stage.url)
  await page.getByRole('article').first().waitFor()
  await expectAccessible(page, colorScheme)
  await expectNoSidewaysScroll(page, colorScheme)
  expect(messages).toEqual([])
  await close()
})

test('an open page sends at most 100 requests per minute', async () => {
  const { page, close } = await openTab(browser)
  await page.clock.install()
  await page.goto(stage.url)
  await page.getByRole('article').first().waitFor()
  let count = 0
  page.on('request', (request) => {
    if (request.url().includes('/api/')) count += 1
  })
  for (let second = 0; second < 60; second += 1) {
    await page.clock.runFor(1_000)
    await page.waitForLoadState('networkidle')
  }
  expect(count).toBeGreaterThan(20)
  expect(count).toBeLessThanOrEqual(100)
  await close()
})

test('an error names the reason, its code and the request, and keeps nothing back', async () => {
  const { page, close } = await openTab(browser)
  await page.route('**/api/v1/overview', (route) =>
    route.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      body: JSON.stringify({
        ...{ type: 'urn:redrive:problem:unavailable', title: 'Unavailable', status: 503 },
        ...{
          code: 'unavailable',
          detail: 'Cannot connect to the database.',
          requestId: '5f20c1aa',
        },
      }),
    }),
  )
  await page.goto(stage.url)
  const alert = page.getByRole('alert')
  await alert.waitFor()
  expect(await alert.textContent()).toContain(
    'Cannot load the overview.Cannot connect to the database. unavailable, request 5f20c1aa',
  )
  await page.unroute('**/api/v1/overview')
  await alert.getByRole('button', { name: 'Retry' }).click()
  await page.getByRole('article').first().waitFor()
  await close()
})
