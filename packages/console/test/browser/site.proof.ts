/** Builds the documentation site and checks every page in Chromium. */
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { ROOT } from '@redrive/dev-support'
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

const SITE = `${ROOT}.reports/site`
const PICTURES = `${ROOT}.reports/site-pictures`
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** Long enough for the browser to paint, also on a busy machine. */
const SECOND_PART_MS = 1_000

let browser: Browser
let server: Server
let origin: string

beforeAll(async () => {
  const env = { ...process.env, NODE_ENV: 'production' }
  execFileSync('pnpm', ['docs:build'], { cwd: ROOT, stdio: 'ignore', env })
  mkdirSync(PICTURES, { recursive: true })
  browser = await launch()
  // A static host with clean addresses, as VitePress expects.
  server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://localhost')
    const isSlow = search === '?slow'
    const file = pathname.endsWith('/') ? `${pathname}index.html` : pathname
    const path = extname(file) === '' ? `${file}.html` : file
    readFile(join(SITE, path)).then(
      (bytes) => {
        response.setHeader('content-type', TYPES[extname(path)] ?? 'text/plain')
        // The rest after the browser has painted the first part.
        const at = isSlow ? bytes.lastIndexOf('<div class="content"') : bytes.length
        response.write(bytes.subarray(0, at))
        setTimeout(() => response.end(bytes.subarray(at)), isSlow ? SECOND_PART_MS : 0)
      },
      () => response.writeHead(404).end(),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}, 300_000)
afterAll(async () => {
  await browser?.close()
  server?.close()
})

const pages = () =>
  globSync('**/*.html', { cwd: SITE })
    .map((file) => `/${file.replace(/(index)?\.html$/, '')}`)
    .filter((path) => path !== '/404')
    .sort()

/** A tenth of the shift that web.dev calls good. Code blocks move by less than a pixel when their font is ready. */
const MOST_SHIFT = 0.01

/** Counts shifts of the layout from the first frame. */
const COUNT_SHIFTS = `window.shifts = 0
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value
}).observe({ type: 'layout-shift', buffered: true })`

const LOOKS = [
  { name: 'light-wide', viewport: WIDE, colorScheme: 'light' },
  { name: 'dark-wide', viewport: WIDE, colorScheme: 'dark' },
  { name: 'light-narrow', viewport: NARROW, colorScheme: 'light' },
  { name: 'dark-narrow', viewport: NARROW, colorScheme: 'dark' },
] as const
const PICTURED = ['/', '/get-started', '/rabbitmq', '/comparison', '/reference/cli']

test.each(LOOKS)(
  'every page is accessible and has a stable layout: $name',
  async ({ name, viewport, colorScheme }) => {
    const { page, messages, close } = await openTab(browser, { viewport, colorScheme })
    await page.addInitScript(COUNT_SHIFTS)
    for (const path of pages()) {
      await page.goto(`${origin}${path}`, { waitUntil: 'load' })
      const what = `${name} ${path}`
      await expectAccessible(page, what)
      await expectNoSidewaysScroll(page, what)
      const shifts = (await page.evaluate('window.shifts')) as number
      expect({ what, isStable: shifts < MOST_SHIFT }).toEqual({ what, isStable: true })
      if (PICTURED.includes(path)) {
        const file = `${PICTURES}/${path.slice(1).replaceAll('/', '-') || 'home'}-${name}.png`
        await page.screenshot({ path: file })
      }
    }
    expect(messages).toEqual([])
    await close()
  },
  900_000,
)

test('a page that arrives in two parts has a stable layout', async () => {
  const { page, close } = await openTab(browser, { viewport: WIDE })
  await page.addInitScript(COUNT_SHIFTS)
  await page.goto(`${origin}/choose-packages?slow`, { waitUntil: 'load' })
  expect((await page.evaluate('window.shifts')) as number).toBeLessThan(MOST_SHIFT)
  await close()
}, 60_000)

interface Links {
  readonly ids: readonly string[]
  readonly hrefs: readonly string[]
}

const linksOf = (page: Page) =>
  page.evaluate(`({
    ids: [...document.querySelectorAll('[id]')].map(({ id }) => id),
    hrefs: [...document.querySelectorAll('main a[href], aside a[href]')].map(({ href }) => href),
  })`) as Promise<Links>

test('every link leads to a page and a heading that exist', async () => {
  const { page, close } = await openTab(browser)
  const found = new Map<string, Links>()
  for (const path of pages()) {
    await page.goto(`${origin}${path}`)
    found.set(path, await linksOf(page))
  }
  const broken = [...found].flatMap(([path, { hrefs }]) =>
    hrefs
      .map((href) => new URL(href))
      .filter((url) => url.origin === origin && extname(url.pathname) !== '.md')
      .filter(({ pathname, hash }) => {
        const target = found.get(pathname)
        return (
          target === undefined ||
          (hash !== '' && !target.ids.includes(decodeURIComponent(hash.slice(1))))
        )
      })
      .map(({ pathname, hash }) => `${path} links to ${pathname}${hash}`),
  )
  expect(broken).toEqual([])
  await close()
}, 300_000)

test('the search finds an error code and a flag without a network', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(origin)
  for (const word of ['PAYLOAD_INVALID', '--max-age']) {
    await page
      .getByRole('button', { name: /search/i })
      .first()
      .click()
    await page.getByRole('searchbox').fill(word)
    await page.locator('.result').first().waitFor()
    expect(await page.locator('.result').count()).toBeGreaterThan(0)
    await page.keyboard.press('Escape')
  }
  await close()
}, 120_000)
