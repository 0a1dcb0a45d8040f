import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectAccessible, expectNoSidewaysScroll, launch, NARROW, openTab } from './browser.ts'
import { openStage, seed, type Stage } from './stage.ts'

let browser: Browser
let stage: Stage

beforeAll(async () => {
  browser = await launch()
  stage = await openStage('redrive_console_policy')
  await seed(stage.catalog, {
    ...{ source: 'orders/eu', class: 'transient', message: 'connect ECONNREFUSED payments-api' },
    times: [Date.now()],
  })
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

/** A small outage, so that the simulation is short. */
const SMALL = 'arrivals=5&capacity=20&inFlight=10'
const PATH = '/sources/orders%2Feu/policy'
/** A simulation computes. On a busy machine it takes long. */
const SIMULATED = { timeout: 80_000 }

test('a policy is found and simulated by keyboard, and the address has the scenario', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(`${stage.url}/sources?source=orders%2Feu`)
  await page.getByRole('link', { name: 'Simulate its policy' }).waitFor()
  await page.keyboard.press('s')
  await page.waitForURL(`${stage.url}${PATH}`)
  // A mistake is reported next to the fields, and nothing is simulated.
  await page.getByRole('textbox', { name: 'Arrivals per second' }).fill('200')
  await page.getByText('Capacity: enter a whole number above the arrivals').first().waitFor()
  await page.getByRole('textbox', { name: 'Arrivals per second' }).fill('5')
  await page.getByRole('textbox', { name: 'Capacity per second' }).fill('20')
  await page.getByRole('textbox', { name: 'In flight' }).fill('10')
  await page
    .getByRole('textbox', { name: 'Policy, options' })
    .fill('{ "breaker": "off", "outage": "off", "retry": { "attempts": 2 } }')
  await page.getByRole('textbox', { name: 'In flight' }).focus()
  await page.keyboard.press('Enter')
  await page.waitForURL(/arrivals=5/)
  const effective = page.getByRole('region', { name: 'Effective policy' })
  await effective.getByRole('row', { name: 'Attempts 2 attempts this page' }).waitFor(SIMULATED)
  await effective.getByRole('row', { name: 'Breaker off this page' }).waitFor()
  await effective.getByRole('row', { name: 'Maximum age 14 d default' }).waitFor()
  // Two attempts without a breaker give up good messages.
  const lost = page.getByRole('row', { name: /^Good messages dead-lettered \d+.*goal missed/ })
  await lost.waitFor(SIMULATED)
  await page.getByText('The textbook policy reaches').waitFor(SIMULATED)
  await page.getByRole('button', { name: 'Data as table' }).click()
  await page.getByRole('columnheader', { name: 'From second' }).waitFor()
  const link = page.url()
  await page.goBack()
  expect(await page.getByRole('textbox', { name: 'Arrivals per second' }).inputValue()).toBe('100')
  await page.goto(link)
  await lost.waitFor(SIMULATED)
  expect(messages).toEqual([])
  await close()
})

test.for([
  ['light', undefined],
  ['dark', NARROW],
] as const)('the default policy meets its goals: %s', async ([colorScheme, viewport]) => {
  const narrow = viewport === undefined ? {} : { viewport }
  const { page, messages, close } = await openTab(browser, { colorScheme, ...narrow })
  // More messages than in the first test: the goal of attempts per message needs some.
  await page.goto(`${stage.url}${PATH}?arrivals=50&capacity=75&inFlight=10&compare=none`)
  const goals = page.getByRole('row', { name: /goal met/ })
  await goals.nth(3).waitFor(SIMULATED)
  expect(await page.getByRole('row', { name: /goal missed/ }).count()).toBe(0)
  const line = await page.locator('[data-line="own"] .load-chart-line').getAttribute('d')
  expect(line?.split('L').length).toBeGreaterThan(60)
  await page.getByText(/times per second and drains\.$/).waitFor()
  await expectAccessible(page, `policy ${colorScheme}`)
  await expectNoSidewaysScroll(page, `policy ${colorScheme}`)
  expect(messages).toEqual([])
  await close()
})

test('a policy that is not valid is reported with its problems', async () => {
  const { page, messages, close } = await openTab(browser)
  const policy = encodeURIComponent('{ "retry": { "attempts": 0, "tries": 3 } }')
  await page.goto(`${stage.url}${PATH}?${SMALL}&policy=${policy}`)
  await page.getByText('Cannot simulate this policy.').waitFor(SIMULATED)
  await page.getByText(/The policy has 2 problems/).waitFor()
  await expectAccessible(page, 'invalid policy')
  await page.goto(`${stage.url}${PATH}?${SMALL}&policy=${encodeURIComponent('{ nope')}`)
  await page.getByText(/The policy is not valid JSON/).waitFor(SIMULATED)
  expect(messages).toEqual([])
  await close()
})

test('a simulation can be stopped, and a source without permission has no page', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(`${stage.url}${PATH}?outage=15m&arrivals=1000&capacity=1500&inFlight=2000`)
  await page.getByText('simulating this policy').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Stopped.').waitFor()
  await expectAccessible(page, 'stopped')
  // The same fields start it again.
  await page.getByRole('button', { name: /^Simulate/ }).click()
  await page.getByText('simulating this policy').waitFor()
  expect(await page.getByText('Stopped.').count()).toBe(0)
  await page.goto(`${stage.url}/sources/other/policy`)
  await page.getByText('Not found, or no permission to view it.').waitFor()
  expect(messages).toEqual([])
  await close()
})

test('a denied clipboard is reported', async () => {
  const { page, close } = await openTab(browser)
  await page.addInitScript(
    `navigator.clipboard.writeText = () => Promise.reject(new Error('denied'))`,
  )
  await page.goto(`${stage.url}${PATH}?${SMALL}&compare=none`)
  await page.getByRole('button', { name: 'Copy the policy' }).click()
  await page
    .getByText('Cannot copy the policy. The browser denied access to the clipboard.')
    .waitFor()
  expect(await page.getByText('Policy copied').count()).toBe(0)
  await close()
})

test('the page reports sources that cannot be loaded', async () => {
  const { page, close } = await openTab(browser)
  await page.route('**/api/v1/sources**', (route) =>
    route.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      body: JSON.stringify({
        ...{ type: 'urn:redrive:problem:unavailable', title: 'unavailable', status: 503 },
        ...{ code: 'unavailable', detail: 'Cannot connect to the database.', requestId: '5f20' },
      }),
    }),
  )
  await page.goto(`${stage.url}${PATH}`)
  await page.getByText('Cannot load sources.').waitFor()
  expect(await page.getByText('Cannot connect to the database.').count()).toBe(1)
  await page.unroute('**/api/v1/sources**')
  await page.getByRole('button', { name: 'Retry' }).click()
  await page.getByRole('heading', { name: 'Policy of orders/eu', level: 1 }).waitFor()
  await close()
})
