import type { BrowserContext, Locator, Page } from 'playwright-core'

/** Uses a page with one kind of input only. */
export interface Hands {
  /** Opens a link or presses a button. */
  press(target: Locator): Promise<void>
  /** Replaces the text of a field. */
  type(target: Locator, text: string): Promise<void>
  /** Opens a screen of the main menu. */
  open(screen: Screen): Promise<void>
}

/** Screens of the main menu with their keys. */
const SCREENS = { Overview: 'o', Groups: 'g', Replays: 'r', Approvals: 'a' } as const
export type Screen = keyof typeof SCREENS

export const HANDS = {
  mouse: (page: Page): Hands => ({
    press: (target) => target.click(),
    async type(target, text) {
      await target.click()
      await replaceText(page, text)
    },
    open: (screen) => menuLink(page, screen).click(),
  }),
  keyboard: (page: Page): Hands => ({
    async press(target) {
      await reach(page, target)
      await page.keyboard.press('Enter')
    },
    async type(target, text) {
      await reach(page, target)
      await replaceText(page, text)
    },
    async open(screen) {
      await menuLink(page, screen).waitFor()
      await page.keyboard.press('g')
      await page.keyboard.press(SCREENS[screen])
    },
  }),
} as const

export type HandsName = keyof typeof HANDS

const menuLink = (page: Page, screen: Screen) =>
  page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: screen })

async function replaceText(page: Page, text: string): Promise<void> {
  await page.keyboard.press('ControlOrMeta+a')
  await page.keyboard.type(text)
}

/** Whether the element has the focus. In a shadow root, the active element of the page is only its host. */
const hasFocus = (element: Element): boolean =>
  (element.getRootNode() as Document | ShadowRoot).activeElement === element

/** 150: twice as many as the longest screen of the proof has. */
const TABS_MAX = 150

/** Moves the focus with the Tab key until it is on the target. No function sets the focus. */
async function reach(page: Page, target: Locator): Promise<void> {
  await target.waitFor()
  for (let tabs = 0; tabs < TABS_MAX; tabs++) {
    if (await target.evaluate(hasFocus)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`The Tab key does not reach ${target.toString()}.`)
}

const POINTER_EVENTS = [
  'click',
  'dblclick',
  'mousedown',
  'mousemove',
  'pointerdown',
  'pointermove',
  'touchstart',
  'wheel',
]

export interface PointerEvent {
  readonly type: string
  readonly origin: string
}

/** Records every event of a mouse or finger in all pages of a browser window. */
export async function recordPointer(context: BrowserContext): Promise<readonly PointerEvent[]> {
  const events: PointerEvent[] = []
  await context.exposeBinding('recordPointer', ({ frame }, type: string) => {
    events.push({ type, origin: new URL(frame.url()).origin })
  })
  // The Enter key on a button also sends a click, with the count 0.
  await context.addInitScript(`
    for (const type of ${JSON.stringify(POINTER_EVENTS)}) {
      addEventListener(type, (event) => {
        if (type !== 'click' || event.detail > 0) void recordPointer(type)
      }, { capture: true, passive: true })
    }`)
  return events
}
