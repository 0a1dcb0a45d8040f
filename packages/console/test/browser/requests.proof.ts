import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launch, openTab } from './browser.ts'
import { pass, stopClock, watchRequests } from './minute.ts'
import { openStage, seed, setOneAside, type Stage } from './stage.ts'

const MINUTE_MS = 60_000
const GROUPS = 5

let browser: Browser
let stage: Stage
const ids = { group: '', message: '', planned: '', running: '', aside: '' }

beforeAll(async () => {
  browser = await launch()
  const config = { limits: { requestsPerMinute: 100_000 } }
  stage = await openStage('redrive_console_requests', { config })
  const groups: string[] = []
  for (let at = 0; at < GROUPS; at += 1) {
    groups.push(
      await seed(stage.catalog, {
        ...{ source: `orders-${at}`, class: 'transient', message: `ECONNREFUSED host-${at}` },
        times: Array.from({ length: 120 }, (_, n) => Date.now() - 600_000 - n),
      }),
    )
  }
  const [group = '', other = ''] = groups
  const { deadLetters } = await stage.catalog.deadLetters({ groups: [group], after: 0 })
  const { replays } = stage.catalog
  const run = await replays.plan({ selection: { group: other }, by: 'ben' })
  await replays.approve(run.id, { by: 'ada', hash: run.hash })
  ids.group = group
  ids.message = deadLetters[0]?.id ?? ''
  ids.planned = (await replays.plan({ selection: { group }, by: 'ben' })).id
  ids.running = run.id
  ids.aside = await setOneAside(stage.catalog, 'orders-0')
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

/**
 * The most requests in a minute of each screen, with five groups that need a decision. docs/server.md has the same numbers.
 * Each screen includes 24 requests of the sidebar, unless it reads the same data more often.
 */
// biome-ignore format: one row per screen
const MOST: readonly (readonly [name: string, path: () => string, ready: string, most: number])[] = [
  ['overview', () => '/', 'Needs a decision', 92],
  ['groups', () => '/groups', 'ECONNREFUSED', 42],
  ['group', () => `/groups/${ids.group}`, 'First failure', 66],
  ['messages', () => '/messages', 'order-0', 38],
  ['message', () => `/messages/${ids.message}`, 'Cycle 1', 44],
  ['plan', () => `/replays/${ids.planned}`, 'Ready', 41],
  ['run', () => `/replays/${ids.running}`, 'Running', 40],
  ['replays', () => '/replays', 'Running', 38],
  ['approvals', () => '/approvals', 'Plan hash', 46],
  ['sources', () => '/sources', 'orders-0', 31],
  ['set aside', () => `/sources/set-aside?entry=${ids.aside}`, 'SHA-256', 49],
  ['audit', () => '/audit', 'Audit', 27],
  ['settings', () => '/settings/tokens', 'Create token', 27],
]

test.for(MOST)('the screen %s sends at most the stated requests in a minute', async (row) => {
  const [name, path, ready, most] = row
  const { page, messages, close } = await openTab(browser)
  const requests = watchRequests(page)
  await page.clock.install()
  await page.goto(stage.url + path())
  await page.locator('main').getByText(ready).filter({ visible: true }).first().waitFor()
  await stopClock(page)
  await pass(page, requests, 4_000)
  const before = requests.count()
  await pass(page, requests, MINUTE_MS)
  const sent = requests.count() - before
  expect({ name, sent, isWithin: sent > 0 && sent <= most }).toEqual({ name, sent, isWithin: true })
  expect(messages).toEqual([])
  await close()
})

test('a hidden page and a paused page send no requests', async () => {
  const { page, close } = await openTab(browser)
  const requests = watchRequests(page)
  await page.clock.install()
  await page.goto(stage.url)
  await page.getByText('Needs a decision').first().waitFor()
  await stopClock(page)
  await pass(page, requests, 4_000)
  const during = async (durationMs: number) => {
    const before = requests.count()
    await pass(page, requests, durationMs)
    return requests.count() - before
  }
  expect(await during(10_000)).toBeGreaterThan(0)
  await page.keyboard.press('l')
  await page.getByText('Paused', { exact: true }).waitFor()
  expect(await during(MINUTE_MS)).toBe(0)
  await page.keyboard.press('l')
  expect(await during(10_000)).toBeGreaterThan(0)
  await page.evaluate(`Object.defineProperty(document, 'visibilityState', { get: () => 'hidden', configurable: true })
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`)
  expect(await during(MINUTE_MS)).toBe(0)
  await close()
})
