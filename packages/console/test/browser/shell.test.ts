import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectAccessible, expectNoSidewaysScroll, launch, NARROW, openTab } from './browser.ts'
import { openStage, seed, type Stage } from './stage.ts'

let browser: Browser
let stage: Stage
/** The same database is not needed: this server only shows its sign-in page. */
let guarded: Stage

const OIDC = {
  issuer: 'https://id.shop.example',
  clientId: 'redrive',
  clientSecret: 'a secret of the client',
}

beforeAll(async () => {
  browser = await launch()
  stage = await openStage('redrive_console_shell')
  await seed(stage.catalog, {
    source: 'orders',
    class: 'transient',
    message: 'connect ECONNREFUSED payments-api',
    times: [Date.now()],
  })
  guarded = await openStage('redrive_console_sign_in', {
    path: '/tools/redrive',
    auth: { oidc: OIDC },
  })
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
  await guarded?.end()
})

/** Returns to the page, which then loads its data again. */
const refocus = (page: Page) =>
  page.evaluate(`document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`)

describe('without a session', () => {
  test.for(['light', 'dark'] as const)(
    'the sign-in page names the provider and returns to the page: %s',
    async (colorScheme) => {
      const { page, messages, close } = await openTab(browser, { colorScheme })
      await page.goto(`${guarded.url}/groups?q=source%3Aorders`)
      const button = page.getByRole('link', { name: 'Continue with id.shop.example' })
      expect(await button.getAttribute('href')).toBe(
        '/tools/redrive/auth/login?returnTo=%2Ftools%2Fredrive%2Fgroups%3Fq%3Dsource%253Aorders',
      )
      await expectAccessible(page, 'sign-in')
      // The browser reports the 401 of the first request. Nothing else may be reported.
      expect(messages.filter((text) => !text.includes('401'))).toEqual([])
      await close()
    },
  )
})

test('the shell works by keyboard alone, without a message in the console', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(stage.url)
  await page.getByRole('link', { name: 'Overview' }).waitFor()
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to content')
  for (const [keys, path] of [
    ['gg', '/groups'],
    ['gs', '/sources'],
    ['go', '/'],
  ] as const) {
    for (const key of keys) await page.keyboard.press(key)
    await page.waitForURL(stage.url + path)
  }
  await page.keyboard.press('t')
  await page.getByRole('button', { name: /^Times: Local, / }).waitFor()
  await page.keyboard.press('l')
  await page.getByText('Paused', { exact: true }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.getByRole('option', { name: /connect ECONNREFUSED/ }).waitFor()
  await page.keyboard.type('sour')
  await page.getByRole('option', { name: /Sources/ }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(`${stage.url}/sources`)
  expect(messages).toEqual([])
  await close()
})

test.for([
  ['light', undefined],
  ['dark', NARROW],
] as const)('the shell has no accessibility problem: %s', async ([colorScheme, viewport]) => {
  const narrow = viewport === undefined ? {} : { viewport }
  const { page, messages, close } = await openTab(browser, { colorScheme, ...narrow })
  await page.goto(`${stage.url}/audit`)
  await page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor()
  await expectAccessible(page, colorScheme)
  await expectNoSidewaysScroll(page, colorScheme)
  expect(messages).toEqual([])
  await close()
})

test('an unknown address is reported, and a theme is kept', async () => {
  const { page, close } = await openTab(browser, { colorScheme: 'light' })
  await page.goto(`${stage.url}/nothing/here`)
  await page.getByText('Not found, or no permission to view it.').waitFor()
  await page.getByRole('button', { name: /theme and sign-out/ }).click()
  await page.getByRole('menuitemradio', { name: 'Dark theme' }).click()
  const theme = () => page.evaluate('document.documentElement.dataset.theme')
  expect(await theme()).toBe('dark')
  await page.reload()
  expect(await theme()).toBe('dark')
  await close()
})

test('a lost connection is reported with the age of the data, and ends without an action', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/sources`)
  await page.getByRole('heading', { name: 'Sources', level: 1 }).waitFor()
  await stage.stop()
  await refocus(page)
  await page.getByText(/^No connection to the server for/).waitFor()
  expect(await page.getByText(/Data is from \d\d:\d\d:\d\d\./).isVisible()).toBe(true)
  expect(await page.getByText('Offline', { exact: true }).isVisible()).toBe(true)
  // Before the server returns: afterwards the page can recover before the click.
  const retried = page.waitForEvent('requestfailed')
  await page.getByRole('button', { name: 'Retry now' }).click()
  await retried
  await stage.start()
  await page.getByText(/^No connection to the server for/).waitFor({ state: 'detached' })
  await close()
})

test('a session that ends leaves the page and its input', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/sources`)
  await page.getByRole('heading', { name: 'Sources', level: 1 }).waitFor()
  const problem = { type: 'urn:redrive:problem:unauthenticated', title: 'Unauthorized' }
  await page.route('**/api/v1/**', (route) =>
    route.fulfill({
      status: 401,
      contentType: 'application/problem+json',
      body: JSON.stringify({
        ...problem,
        ...{ status: 401, code: 'unauthenticated', detail: 'Sign in.', requestId: '1' },
      }),
    }),
  )
  await refocus(page)
  await page.getByText('Your session ended.').waitFor()
  expect(await page.getByRole('heading', { name: 'Sources', level: 1 }).isVisible()).toBe(true)
  await page.unroute('**/api/v1/**')
  await refocus(page)
  await page.getByText('Your session ended.').waitFor({ state: 'detached' })
  await close()
})
