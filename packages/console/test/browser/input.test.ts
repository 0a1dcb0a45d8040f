import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeIn, expectAccessible, launch, openTab, writeCode } from './browser.ts'
import { openStage, seed, type Stage } from './stage.ts'

let browser: Browser
let stage: Stage

beforeAll(async () => {
  browser = await launch()
  stage = await openStage('redrive_console_input')
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

const cause = (source: string, count = 1) =>
  seed(stage.catalog, {
    ...{ source, class: 'schema', message: `expected string at /currency of ${source}` },
    times: Array.from({ length: count }, (_, at) => Date.now() - at),
    body: { id: 'pay_1', amount: 5 },
  })

/** Answers requests with a problem until the route is removed. */
const refuse = (page: Page, path: string, status: number, code: string) =>
  page.route(path, (route) =>
    route.fulfill({
      status,
      contentType: 'application/problem+json',
      body: JSON.stringify({
        ...{ type: `urn:redrive:problem:${code}`, title: code, status, code },
        ...{ detail: 'Try again later.', requestId: '5f20c1aa' },
      }),
    }),
  )

test('the editor requests a confirmation before Back or a reload loses the text', async () => {
  const { page, messages, close } = await openTab(browser)
  await cause('edited')
  await page.goto(`${stage.url}/messages?q=source%3Aedited`)
  await page.getByRole('link', { name: 'order-0', exact: true }).click()
  await page.getByRole('link', { name: 'Edit and replay…' }).click()
  await page.getByRole('textbox', { name: 'Reason' }).fill('Ticket 4411')
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Reveal/ })
    .click()
  const body = page.locator('.cm-editor').getByRole('textbox', { name: 'Body', exact: true })
  const typed = '{ "id": "pay_1", "amount": 6 }'
  await writeCode(body, typed)
  await page.getByText('changed', { exact: true }).waitFor()
  const asked = page.getByRole('dialog', { name: 'Leave without a plan' })
  await page.evaluate('history.back()')
  await asked.waitFor()
  await expectAccessible(page, 'leave dialog')
  await asked.getByRole('button', { name: 'Keep editing' }).click()
  await asked.waitFor({ state: 'detached' })
  expect(await codeIn(body)).toBe(typed)
  expect(page.url()).toMatch(/\/edit$/)
  // The browser shows this dialog.
  const [question] = await Promise.all([
    page.waitForEvent('dialog'),
    page.evaluate('setTimeout(() => location.reload())'),
  ])
  expect(question.type()).toBe('beforeunload')
  await question.dismiss()
  expect(await codeIn(body)).toBe(typed)
  await page.evaluate('history.back()')
  await asked.getByRole('button', { name: 'Discard the changes' }).click()
  await page.waitForURL(/\/messages\/[^/]+$/)
  expect(messages).toEqual([])
  await close()
})

test('the reason of a discard is kept until its comment is stored', async () => {
  const { page, close } = await openTab(browser)
  const group = await cause('discarded', 3)
  await page.goto(`${stage.url}/groups/${group}`)
  await page.getByRole('cell', { name: 'order-0', exact: true }).waitFor()
  await page.keyboard.press('d')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('Agreed with finance')
  // The server refuses the comment, not the discard. A retry of the discard with a new key would be another discard.
  await refuse(page, '**/comments', 429, 'too_many_requests')
  await dialog.getByRole('button', { name: 'Discard 3 messages' }).click()
  await dialog.getByText(/the reason is not saved as a comment\. Try again later\./).waitFor()
  expect(await dialog.getByRole('textbox', { name: 'Reason' }).inputValue()).toBe(
    'Agreed with finance',
  )
  // The page behind the dialog already has the new counts.
  await page.getByText('None is open.').waitFor()
  await page.unroute('**/comments')
  await dialog.getByRole('button', { name: 'Save the reason' }).click()
  await page.getByText('Discarded 3 messages: Agreed with finance').waitFor()
  await dialog.waitFor({ state: 'detached' })
  const found = await stage.catalog.deadLetters({
    groups: [group],
    statuses: ['discarded'],
    after: 0,
  })
  expect(found.deadLetters.length).toBe(3)
  await close()
})

test('the reason of discarded messages is kept until its comment is stored', async () => {
  const { page, close } = await openTab(browser)
  const group = await cause('picked', 3)
  await page.goto(`${stage.url}/messages?q=source%3Apicked`)
  for (const key of ['order-0', 'order-1']) {
    await page.getByRole('checkbox', { name: `Select ${key}`, exact: true }).check()
  }
  await page.getByRole('button', { name: 'Discard 2…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('Agreed with finance')
  await refuse(page, '**/comments', 429, 'too_many_requests')
  await dialog.getByRole('button', { name: 'Discard 2 messages' }).click()
  await dialog.getByText(/the reason is not saved as a comment\. Try again later\./).waitFor()
  expect(await dialog.getByRole('textbox', { name: 'Reason' }).inputValue()).toBe(
    'Agreed with finance',
  )
  await page.unroute('**/comments')
  await dialog.getByRole('button', { name: 'Save the reason' }).click()
  await dialog.waitFor({ state: 'detached' })
  // The discarded messages leave the list, and the group has the reason with the true number.
  await page.getByRole('link', { name: 'order-1', exact: true }).waitFor({ state: 'detached' })
  const comments = await stage.catalog.comments(group)
  expect(comments.map(({ text }) => text)).toEqual(['Discarded 2: Agreed with finance'])
  await close()
})

test('a discard without its comment ends the selection when the dialog is closed', async () => {
  const { page, close } = await openTab(browser)
  await cause('closed', 2)
  await page.goto(`${stage.url}/groups?q=source%3Aclosed`)
  await page.getByRole('checkbox', { name: /^Select all/ }).check()
  const selected = page.getByText(/^1\sgroup selected$/)
  await selected.waitFor()
  await page.getByRole('button', { name: /^Discard 2…/ }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('Agreed with finance')
  await refuse(page, '**/comments', 429, 'too_many_requests')
  await dialog.getByRole('button', { name: 'Discard 2 messages' }).click()
  await dialog.getByText(/the reason is not saved as a comment/).waitFor()
  await dialog.getByRole('button', { name: 'Close' }).click()
  await dialog.waitFor({ state: 'detached' })
  await expect.poll(() => selected.count()).toBe(0)
  await close()
})

test('drafts are removed when the user signs out', async () => {
  const { page, close } = await openTab(browser)
  // The development mode has no session, so the page gets one here.
  await page.route('**/api/v1/me', async (route) => {
    const response = await route.fetch()
    const me = (await response.json()) as object
    await route.fulfill({ response, json: { ...me, via: 'session', csrf: 'proof' } })
  })
  await page.route('**/auth/logout', (route) => route.fulfill({ status: 204 }))
  await page.goto(`${stage.url}/sources`)
  await page.evaluate(`
    sessionStorage.setItem('redrive-wizard-draft-1', '{"note":"secret"}')
    sessionStorage.setItem('other', 'kept')
  `)
  await page.getByRole('button', { name: /theme and sign-out/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.waitForURL(`${stage.url}/`)
  expect(await page.evaluate(`sessionStorage.getItem('redrive-wizard-draft-1')`)).toBeNull()
  expect(await page.evaluate(`sessionStorage.getItem('other')`)).toBe('kept')
  await close()
})

test('drafts of another user are removed at the next sign-in in the same tab', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/sources`)
  await page.getByRole('heading', { name: 'Sources', level: 1 }).waitFor()
  await page.evaluate(`sessionStorage.setItem('redrive-wizard-draft-1', '{}')`)
  await page.reload()
  await page.getByRole('heading', { name: 'Sources', level: 1 }).waitFor()
  expect(await page.evaluate(`sessionStorage.getItem('redrive-wizard-draft-1')`)).toBe('{}')
  await page.route('**/api/v1/me', async (route) => {
    const response = await route.fetch()
    const me = (await response.json()) as object
    await route.fulfill({ response, json: { ...me, person: 'another' } })
  })
  await page.reload()
  await page.getByRole('heading', { name: 'Sources', level: 1 }).waitFor()
  expect(await page.evaluate(`sessionStorage.getItem('redrive-wizard-draft-1')`)).toBeNull()
  await close()
})

test('a screen that cannot be shown is reported, and the others still work', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(stage.url)
  await page.getByRole('link', { name: 'Overview' }).waitFor()
  // As after an upgrade of the server, whose new build has other files.
  await page.route('**/assets/sources-*.js', (route) => route.fulfill({ status: 404 }))
  await page.goto(`${stage.url}/sources`)
  await page.getByText('This page cannot be shown.').waitFor()
  await expectAccessible(page, 'error of a screen')
  await page.getByRole('link', { name: 'Groups' }).click()
  await page.getByRole('heading', { name: 'Groups', level: 1 }).waitFor()
  await page.goto(`${stage.url}/sources`)
  await page.getByText('This page cannot be shown.').waitFor()
  await page.unroute('**/assets/sources-*.js')
  await page.getByRole('button', { name: 'Reload' }).click()
  await page.getByRole('heading', { name: 'Sources', level: 1 }).waitFor()
  await close()
})

test('only pages that update are shown as live', async () => {
  const { page, close } = await openTab(browser)
  const live = page.getByText('Live', { exact: true })
  for (const [path, name, isLive] of [
    ['/sources', 'Sources', true],
    ['/audit', 'Audit', false],
    ['/groups', 'Groups', true],
    ['/settings/masks', 'Settings', false],
  ] as const) {
    await page.goto(stage.url + path)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await expect.poll(() => live.count(), { message: name }).toBe(isLive ? 1 : 0)
  }
  await close()
})
