import type { Browser, Page } from 'playwright-core'
import { openTab } from '../browser.ts'
import { HANDS, type Hands, type HandsName, recordPointer } from './hands.ts'
import type { World } from './world.ts'

/** A person with a separate browser. */
export interface Person {
  readonly page: Page
  readonly hands: Hands
  /** Number of clicks in the console. The pages of the OpenID provider do not count. */
  clicks(): number
  /** Types of all events of a mouse or finger, in all pages. */
  pointerEvents(): readonly string[]
  /** Messages of the browser console. */
  problems(): readonly string[]
  close(): Promise<void>
}

/** 2 min: the plan of a large group is one request. */
const WAIT_MS = 120_000

/** Opens the console in a new browser window, and signs in at the OpenID provider. */
export async function enter(
  browser: Browser,
  { stage, provider }: World,
  name: string,
  kind: HandsName,
): Promise<Person> {
  const { page, messages, close } = await openTab(browser)
  const context = page.context()
  context.setDefaultTimeout(WAIT_MS)
  const events = await recordPointer(context)
  // The pages of the provider load a font from the network.
  await context.route(/fonts\.googleapis\.com/, (route) => route.fulfill({ body: '' }))
  const hands = HANDS[kind](page)
  await page.goto(stage.url)
  await hands.press(page.getByRole('link', { name: `Continue with ${provider.host}` }))
  await hands.type(page.locator('input[name=login]'), name)
  await hands.type(page.locator('input[name=password]'), 'any')
  await hands.press(page.locator('button[type=submit]'))
  // The second form is the consent.
  await page.locator('input[name=login]').waitFor({ state: 'detached' })
  await hands.press(page.locator('button[type=submit]'))
  await page.waitForURL(`${stage.url}/`)
  return {
    ...{ page, hands, close },
    clicks: () =>
      events.filter(({ type, origin }) => type === 'click' && origin === stage.url).length,
    pointerEvents: () => events.map(({ type }) => type),
    // The browser reports the 401 of the first request, which leads to the sign-in page.
    problems: () => messages.filter((text) => !text.includes('401')),
  }
}
