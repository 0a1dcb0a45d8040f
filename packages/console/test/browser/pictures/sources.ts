import { answer, type Picture } from './world.ts'

export const SOURCES: readonly Picture[] = [
  {
    name: 'sources',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/sources?source=orders`)
      await page.getByText('Nothing has expired.').waitFor()
    },
  },
  {
    name: 'sources-empty',
    async open(page, { calm }) {
      await page.goto(`${calm.url}/sources`)
      await page.getByText('No source yet.').waitFor()
    },
  },
  {
    name: 'sources-error',
    async open(page, { bad }) {
      await answer(page, 503, 'unavailable', 'sources,overview')
      await page.goto(`${bad.url}/sources`)
      await page.getByText('Cannot load sources.').waitFor()
    },
  },
  {
    name: 'set-aside',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/sources/set-aside`)
      await page.getByText('3 messages were set aside').waitFor()
      await page.locator('.set-aside-ask').waitFor({ state: 'attached' })
      await page.keyboard.press('x')
    },
  },
  {
    name: 'set-aside-message',
    async open(page, { bad, aside }) {
      await page.goto(`${bad.url}/sources/set-aside?entry=${aside}`)
      await page.getByRole('button', { name: 'Show bytes…' }).click()
      await page.getByRole('textbox', { name: 'Reason' }).fill('ticket 7')
      await page.getByRole('button', { name: 'Show', exact: true }).click()
      await page.getByRole('radio', { name: 'Hex' }).click()
      await page.getByRole('region', { name: 'Bytes: hex' }).waitFor()
    },
  },
  {
    name: 'set-aside-replay',
    async open(page, { bad, aside }) {
      await page.goto(`${bad.url}/sources/set-aside?entry=${aside}`)
      await page.getByRole('button', { name: 'Request replay…' }).click()
      await page.getByRole('dialog').waitFor()
    },
  },
  {
    name: 'set-aside-empty',
    async open(page, { calm }) {
      await page.goto(`${calm.url}/sources/set-aside`)
      await page.getByText('Nothing to decide.').waitFor()
    },
  },
]
