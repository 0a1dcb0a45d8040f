import { mkdirSync, writeFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROOT } from '@redrive/dev-support'
import {
  expectAccessible,
  expectNoSidewaysScroll,
  launch,
  NARROW,
  openTab,
  WIDE,
} from './browser.ts'
import { openComparison } from './pictures/compare.ts'
import { GROUPS } from './pictures/groups.ts'
import { MESSAGES } from './pictures/messages.ts'
import { REPLAYS } from './pictures/replays.ts'
import { SETTINGS } from './pictures/settings.ts'
import { SOURCES } from './pictures/sources.ts'
import { checkSources, openWorld, type World } from './pictures/world.ts'

const FOLDER = `${ROOT}.reports/console`

let browser: Browser
let world: World
let comparison: Awaited<ReturnType<typeof openComparison>>

beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true })
  browser = await launch()
  comparison = await openComparison(browser)
  world = await openWorld()
})
afterAll(async () => {
  await comparison?.close()
  await browser?.close()
  await world?.end()
})

/** The audit log first: later pictures add entries to it. */
const PICTURES = [...SETTINGS, ...GROUPS, ...REPLAYS, ...SOURCES, ...MESSAGES]

const LOOKS = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [WIDE, NARROW].map((viewport) => ({ colorScheme, viewport })),
)

for (const { name, open } of PICTURES) {
  test.for(LOOKS)(`a picture of ${name}: $colorScheme $viewport.width`, async (look) => {
    const { page, close } = await openTab(browser, look)
    await page.clock.setFixedTime(world.now)
    // A check counts for one minute, and the menu shows it on every page.
    await checkSources(world.bad)
    await open(page, world)
    const picture = `${name}-${look.viewport.width}-${look.colorScheme}`
    const isWhole = look.viewport === NARROW
    await page.screenshot({ path: `${FOLDER}/${picture}.png`, fullPage: isWhole })
    await expectAccessible(page, name)
    await expectNoSidewaysScroll(page, name)
    expect(await page.title()).toContain('Redrive')
    const { changes, marked } = await comparison.compare(picture, page, isWhole)
    if (marked !== undefined) writeFileSync(`${FOLDER}/${picture}-changed.png`, marked)
    expect({ picture, changes }).toEqual({ picture, changes: [] })
    await close()
  })
}
