import { answer, callAs, type Picture } from './world.ts'

export const GROUPS: readonly Picture[] = [
  {
    name: 'overview-calm',
    async open(page, { calm }) {
      await page.goto(calm.url)
      await page.getByText('No open dead letters.').waitFor()
    },
  },
  {
    name: 'overview-bad',
    async open(page, { bad }) {
      await page.goto(bad.url)
      await page.getByRole('article').nth(2).waitFor()
    },
  },
  {
    // docs/images/console.png, as users see it after they signed in.
    name: 'readme',
    async open(page, { bad }) {
      await page.goto(bad.url)
      await page.getByRole('article').nth(2).waitFor()
      const bar = page.getByRole('complementary', { name: 'Connection and session' })
      await bar.evaluate((element) => element.remove())
    },
  },
  {
    name: 'overview-error',
    async open(page, { bad }) {
      await answer(page, 503, 'unavailable')
      await page.goto(bad.url)
      await page.getByText('Cannot load the overview.').waitFor()
    },
  },
  {
    name: 'groups',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/groups`)
      await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor()
      await page.keyboard.press('j')
      await page.keyboard.press('x')
    },
  },
  {
    name: 'groups-sections',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/groups?by=source`)
      await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor()
    },
  },
  {
    name: 'groups-none',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/groups?q=class%3Aunknown`)
      await page.getByText('No group matches.').waitFor()
    },
  },
  {
    name: 'groups-error',
    async open(page, { bad }) {
      await answer(page, 503, 'unavailable')
      await page.goto(`${bad.url}/groups`)
      await page.getByText('Cannot load groups.').waitFor()
    },
  },
  {
    name: 'group',
    async open(page, { bad, group }) {
      await page.goto(`${bad.url}/groups/${group}`)
      await page.getByRole('cell', { name: 'order-419' }).waitFor()
    },
  },
  {
    name: 'group-why',
    async open(page, { bad, group }) {
      await page.goto(`${bad.url}/groups/${group}?tab=why&range=24h`)
      await page.getByText('these facts are equal').waitFor()
    },
  },
  {
    name: 'group-discard',
    async open(page, { bad, group }) {
      await page.goto(`${bad.url}/groups/${group}`)
      await page.getByRole('cell', { name: 'order-419' }).waitFor()
      await page.keyboard.press('d')
      await page.getByRole('dialog', { name: 'Discard 420 messages' }).waitFor()
    },
  },
  {
    name: 'offline',
    async open(page, { bad }) {
      await page.goto(bad.url)
      await page.getByRole('article').nth(2).waitFor()
      await page.context().setOffline(true)
      await page.getByText(/^No connection to the server for/).waitFor()
    },
  },
  {
    name: 'groups-merge',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/groups?q=source%3Aorders`)
      await page.getByRole('checkbox', { name: /^Select all/ }).check()
      await page.getByRole('button', { name: 'Merge 2…' }).click()
      await page.getByRole('dialog', { name: 'Merge 2 groups' }).waitFor()
    },
  },
  {
    name: 'group-split',
    async open(page, { bad, group }) {
      await page.goto(`${bad.url}/groups/${group}`)
      await page.getByRole('button', { name: 'More actions' }).click()
      await page.getByRole('menuitem', { name: 'Split…' }).click()
      const dialog = page.getByRole('dialog', { name: 'Split group' })
      await dialog.getByRole('textbox', { name: 'Filter' }).fill('code:ECONNREFUSED')
    },
  },
  {
    name: 'group-viewer',
    async open(page, { bad, group }) {
      await callAs(page)
      await page.goto(`${bad.url}/groups/${group}`)
      await page.getByRole('cell', { name: 'order-419' }).waitFor()
    },
  },
  {
    name: 'groups-loading',
    async open(page, { bad }) {
      await page.route('**/api/v1/groups**', () => undefined)
      await page.goto(`${bad.url}/groups`)
      await page.getByText('Loading…').waitFor({ state: 'attached' })
    },
  },
  {
    name: 'palette',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/groups`)
      await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('orders')
      await page.getByRole('option', { name: /Policy of orders/ }).waitFor()
    },
  },
  {
    name: 'keys',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/groups`)
      await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor()
      await page.keyboard.press('?')
      await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    },
  },
]
