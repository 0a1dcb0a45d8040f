import { globSync } from 'node:fs'
import type { Server } from 'node:http'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  codeIn,
  expectAccessible,
  expectNoSidewaysScroll,
  focused,
  launch,
  NARROW,
  openTab,
  type Tab,
  WIDE,
  writeCode,
} from './browser.ts'
import { serveFolder } from './static-server.ts'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))
let browser: Browser
let server: Server
let url: string
let tab: Tab

beforeAll(async () => {
  const served = await serveFolder(at('../../.tsbuild/components'))
  server = served.server
  url = `${served.url}/components.html`
  browser = await launch()
  tab = await openTab(browser)
  await tab.page.goto(url)
})
afterAll(async () => {
  await browser?.close()
  server?.close()
})

test('the page shows every component', async () => {
  const files = globSync('*.tsx', { cwd: at('../../src/components') })
  const shown = await tab.page
    .locator('[data-files]')
    .evaluateAll((all) => all.map((one) => one.getAttribute('data-files')).join(' '))
  const missing = files
    .map((file) => basename(file, '.tsx'))
    .filter((name) => !shown.split(' ').includes(name))
  expect(missing).toEqual([])
})

test.for([
  ['light', WIDE],
  ['dark', WIDE],
  ['light', NARROW],
  ['dark', NARROW],
] as const)('has no accessibility problem: %s, %o', async ([colorScheme, viewport]) => {
  const own = await openTab(browser, { colorScheme, viewport })
  await own.page.goto(url)
  await own.page.getByRole('heading', { name: 'Components' }).waitFor()
  await expectAccessible(own.page, `${colorScheme} ${viewport.width}`)
  await expectNoSidewaysScroll(own.page, `${viewport.width}`)
  expect(own.messages).toEqual([])
  await own.close()
})

test('has no motion for readers who prefer none', async () => {
  const own = await openTab(browser, { reducedMotion: 'reduce' })
  await own.page.goto(url)
  const moving = await own.page.evaluate(
    `[...document.querySelectorAll('*')].filter((one) => {
      const { transitionDuration, animationName } = getComputedStyle(one)
      return transitionDuration !== '0s' || animationName !== 'none'
    }).length`,
  )
  expect(moving).toBe(0)
  await own.close()
})

test('the arrow keys move between tabs, and a disabled button gives its reason', async () => {
  const { page } = tab
  await page.getByRole('tab', { name: /Open/ }).focus()
  await page.keyboard.press('ArrowRight')
  expect(await page.getByRole('tab', { name: /Muted/ }).getAttribute('aria-selected')).toBe('true')
  const disabled = page.getByRole('button', { name: 'Permission discard is required on payments.' })
  expect(await disabled.getAttribute('aria-disabled')).toBe('true')
})

test('a dialog starts at the least harmful button, needs the count and returns the focus', async () => {
  const { page } = tab
  await page.getByRole('button', { name: 'Discard dialog' }).press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Discard 573 messages' })
  expect(await focused(page)).toBe('Keep')
  const confirm = dialog.getByRole('button', { name: /^Discard 573 messages/ })
  expect(await confirm.getAttribute('aria-disabled')).toBe('true')
  await confirm.click({ force: true })
  expect(await dialog.isVisible()).toBe(true)
  await dialog.getByLabel(/^Type/).fill('573')
  expect(await confirm.getAttribute('aria-disabled')).toBe(null)
  await expectAccessible(page, 'dialog')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  expect(await focused(page)).toBe('Discard dialog')
})

test('a menu opens at its first item, moves with the arrow keys and returns the focus', async () => {
  const { page } = tab
  await page.getByRole('button', { name: 'Most open' }).press('Enter')
  // The button has the same text, so the role shows that the menu has the focus.
  await expect
    .poll(() => page.evaluate(`document.activeElement?.getAttribute('role')`))
    .toMatch(/^menuitem/)
  expect(await focused(page)).toMatch(/^Most open/)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await expect.poll(() => focused(page)).toMatch(/^Latest failure/)
})

test('the filter completes fields and values, and Backspace removes the last word', async () => {
  const { page } = tab
  const filter = page.getByRole('combobox', { name: 'Filter groups', exact: true })
  await filter.fill('cla')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.keyboard.type('tra')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Remove class:transient' }).waitFor()
  await filter.fill('two words')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Remove "two words"' }).waitFor()
  await page.keyboard.press('Backspace')
  expect(await page.getByRole('button', { name: 'Remove "two words"' }).count()).toBe(0)
})

test('a single key acts outside of fields and dialogs, until single keys are switched off', async () => {
  const { page } = tab
  const help = page.getByRole('dialog', { name: 'Keys' })
  await page.getByRole('combobox', { name: 'Filter groups', exact: true }).press('?')
  expect(await help.count()).toBe(0)
  await page.getByRole('button', { name: 'Keys dialog' }).focus()
  await page.keyboard.press('?')
  await help.getByLabel('Use single keys as shortcuts').uncheck()
  await page.keyboard.press('Escape')
  await help.waitFor({ state: 'detached' })
  await page.keyboard.press('?')
  expect(await help.count()).toBe(0)
})

test('the editor marks an error, keeps page keys out, and Tab leaves it', async () => {
  const own = await openTab(browser)
  const { page } = own
  await page.goto(url)
  const body = page.locator('.cm-editor').getByRole('textbox', { name: 'Body', exact: true })
  await writeCode(body, '{ "id": "pay_1", "amount": }')
  // Only the editor marks the place.
  await page.locator('.cm-lintRange-error').filter({ hasText: '}' }).waitFor()
  expect(await page.locator('.cm-lint-marker-error').count()).toBe(1)
  expect(await body.getAttribute('aria-invalid')).toBe('true')
  await expectAccessible(page, 'editor with an error')
  await page.keyboard.press('ControlOrMeta+End')
  await page.keyboard.press('Enter')
  await page.keyboard.type('?')
  expect(await codeIn(body)).toBe('{ "id": "pay_1", "amount": }\n?')
  expect(await page.getByRole('dialog', { name: 'Keys' }).count()).toBe(0)
  const isFocused = () =>
    body.evaluate((one) => (one.getRootNode() as ShadowRoot).activeElement === one)
  await page.keyboard.press('Tab')
  expect(await isFocused()).toBe(false)
  await page.keyboard.press('Shift+Tab')
  expect(await isFocused()).toBe(true)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Tab')
  expect(await isFocused()).toBe(false)
  expect(own.messages).toEqual([])
  await own.close()
})

test('the editor finds text, and its form has no accessibility problem', async () => {
  const own = await openTab(browser, { colorScheme: 'dark' })
  const { page } = own
  await page.goto(url)
  const body = page.locator('.cm-editor').getByRole('textbox', { name: 'Body', exact: true })
  await body.press('ControlOrMeta+f')
  await page.keyboard.type('amount')
  await page.locator('.cm-searchMatch').waitFor()
  await expectAccessible(page, 'form to find text')
  expect(own.messages).toEqual([])
  await own.close()
})

const BEFORE_THE_EDITOR = [
  {
    name: 'a text that was typed stays, with its focus',
    type: (body: Locator) => body.fill('{ "id": 1'),
    next: ' }',
    expected: '{ "id": 1 }',
  },
  {
    name: 'a selected text stays selected, so that the next text replaces it',
    type: (body: Locator) => body.press('ControlOrMeta+a'),
    next: '{}',
    expected: '{}',
  },
]

test.each(BEFORE_THE_EDITOR)('before the editor arrived: $name', async (one) => {
  const own = await openTab(browser)
  const { page } = own
  const gate = Promise.withResolvers<void>()
  await page.route('**/code-area-*.js', async (route) => {
    await gate.promise
    await route.continue()
  })
  await page.goto(url)
  const body = page.getByRole('textbox', { name: 'Body', exact: true })
  await one.type(body)
  gate.resolve()
  await page.locator('.cm-editor').first().waitFor()
  await page.keyboard.insertText(one.next)
  expect(await codeIn(body)).toBe(one.expected)
  await own.close()
})

test('a body can be typed when the editor cannot be loaded', async () => {
  const own = await openTab(browser)
  const { page } = own
  const refused = page.waitForResponse('**/code-area-*.js')
  await page.route('**/code-area-*.js', (route) => route.fulfill({ status: 404 }))
  await page.goto(url)
  await refused
  const body = page.getByRole('textbox', { name: 'Body', exact: true })
  await body.fill('{ "id": 1 }')
  expect(await body.inputValue()).toBe('{ "id": 1 }')
  await own.close()
})

test('text of a peer is escaped and stays text', async () => {
  const text = await tab.page.locator('[data-files=peer]').textContent()
  expect(text).toContain('abc\\u{202e}gnp.exe \\x07 <script>alert(1)</script>')
})
