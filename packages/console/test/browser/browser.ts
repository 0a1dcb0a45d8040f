import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { services } from '@redrive/dev-support'
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core'
import { expect } from 'vitest'

/** Starts the Chromium of `dev/services`. */
export async function launch(): Promise<Browser> {
  await services('up', 'chromium')
  const executablePath = await services('do', 'chromium', 'path')
  // Chromium has no sandbox for root, and tests in a container run as root.
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}

/** 20 s: much longer than a page needs, and shorter than the limit of a test, so that the failure names the element. */
const WAIT_MS = 20_000

export const WIDE = { width: 1440, height: 900 }
export const NARROW = { width: 390, height: 844 }

export interface Tab {
  readonly page: Page
  /** Errors and warnings of the browser console, among them violations of the content security policy. */
  readonly messages: readonly string[]
  readonly close: () => Promise<void>
}

/** Opens a tab and collects the messages of its console. */
export async function openTab(browser: Browser, options: BrowserContextOptions = {}): Promise<Tab> {
  const context = await browser.newContext({
    viewport: WIDE,
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    ...options,
  })
  context.setDefaultTimeout(WAIT_MS)
  const page = await context.newPage()
  const messages: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) messages.push(message.text())
  })
  page.on('pageerror', (error) => messages.push(error.message))
  const close = async () => {
    // A handler of a route may still run: its request ends with the page.
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await context.close()
  }
  return { page, messages, close }
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

/** Expects that axe finds nothing on the page. */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  // Ends running transitions and starts no other: in a transition, a colour has the contrast of neither state.
  await page.emulateMedia({ reducedMotion: 'reduce' })
  // Not a script element, which the content security policy would block.
  await page.evaluate(AXE)
  const violations = (await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)`,
  )) as readonly Violation[]
  const shown = violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}\n${failureSummary}`),
  )
  expect({ what, shown }).toEqual({ what, shown: [] })
}

/** Expects that the page does not scroll sideways. */
export async function expectNoSidewaysScroll(page: Page, what: string): Promise<void> {
  const width = (await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )) as number
  expect({ what, width }).toEqual({ what, width: 0 })
}

/** Returns the text of the focused element. */
export const focused = (page: Page): Promise<unknown> =>
  page.evaluate(
    `document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent`,
  )

/**
 * Replaces the text of an editor. `fill` selects in the page, and the editor may learn about that only after
 * the new text has arrived.
 */
export async function writeCode(editor: Locator, text: string): Promise<void> {
  await editor.press('ControlOrMeta+a')
  await editor.page().keyboard.insertText(text)
}

/** Returns the text of the editor of a body or a patch, which has an element for each line. */
export const codeIn = (editor: Locator): Promise<string> =>
  editor.evaluate((content) =>
    Array.from(content.querySelectorAll('.cm-line'), (line) => line.textContent).join('\n'),
  )
