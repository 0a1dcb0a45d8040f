import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { measure, type Measured } from './measure.ts'
import { settle } from './settle.ts'

const STORED = fileURLToPath(new URL('stored/', import.meta.url))
const isUpdate = process.env['REDRIVE_PICTURES'] === 'update'

/** 6 cells of 8 × 8 px: an icon has 4, a small button has 30. Digits and letters of ids never differ, see `settle`. */
const CELLS_MAX = 6
/** Pages poll, so a text can change between two steps. */
const TRIES = 3

export interface Comparison {
  /** What differs, for the report of the test. Empty: nothing. */
  readonly changes: readonly string[]
  /** A picture with the changed places marked. */
  readonly marked?: Buffer
}

/** Compares pictures of pages with the stored ones. Measures in an empty tab, which has no content security policy. */
export async function openComparison(browser: Browser) {
  const context = await browser.newContext()
  const tab = await context.newPage()
  mkdirSync(STORED, { recursive: true })
  const fonts = await checkFonts(tab)
  const missing: string[] = []
  return {
    compare: (name: string, page: Page, isWhole: boolean) =>
      compare({ tab, fonts, missing, name, page, isWhole }),
    async close() {
      await context.close()
      if (missing.length > 0) console.log(`Not compared, no stored picture: ${missing.join(', ')}`)
    },
  }
}

interface CompareOptions {
  readonly tab: Page
  readonly fonts: string | undefined
  /** Names of pictures without a stored one. */
  readonly missing: string[]
  readonly name: string
  readonly page: Page
  readonly isWhole: boolean
}

async function compare(options: CompareOptions): Promise<Comparison> {
  const { tab, fonts, missing, name, page, isWhole } = options
  const file = `${STORED}${name}.webp`
  if (fonts !== undefined) return { changes: [fonts] }
  if (!isUpdate && !existsSync(file)) {
    missing.push(name)
    return { changes: [] }
  }
  let last: Comparison = { changes: [] }
  for (let at = 0; at < TRIES; at++) {
    await settle(page)
    const shot = await page.screenshot({ fullPage: isWhole, animations: 'disabled' })
    const before = isUpdate ? undefined : readFileSync(file)
    const found = await measure(tab, shot, before)
    if (isUpdate) {
      writeFileSync(file, found.small)
      return { changes: [] }
    }
    last = comparisonOf(found)
    if (last.changes.length === 0) return last
  }
  return last
}

function comparisonOf({ size, storedSize, changed, marked }: Measured): Comparison {
  if (size !== storedSize)
    return { changes: [`The page is ${size} cells of 8 px, and was ${storedSize}.`], marked }
  if (changed.length <= CELLS_MAX) return { changes: [] }
  const [xs, ys] = [changed.map(([x]) => x * 8), changed.map(([, y]) => y * 8)]
  const place = `x ${Math.min(...xs)}–${Math.max(...xs) + 8}, y ${Math.min(...ys)}–${Math.max(...ys) + 8}`
  return { changes: [`${changed.length} cells of 8 × 8 px differ: ${place}.`], marked }
}

/** Stored pictures fit only to the same fonts: another width of letters moves everything. */
async function checkFonts(tab: Page): Promise<string | undefined> {
  const file = `${STORED}fonts.txt`
  const widths = await tab.evaluate(`['system-ui', 'ui-monospace, monospace'].map((font) => {
    const context = document.createElement('canvas').getContext('2d')
    context.font = '40px ' + font
    return context.measureText('Redrive 0123456789 Wizard').width
  })`)
  const text = `${JSON.stringify(widths)}\n`
  if (isUpdate) writeFileSync(file, text)
  const stored = existsSync(file) ? readFileSync(file, 'utf8') : undefined
  return stored === text
    ? undefined
    : 'The stored pictures were made with other fonts. Compare on the machine of the nightly tier, or run: pnpm pictures:update'
}
