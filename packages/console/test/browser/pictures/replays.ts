import { writeCode } from '../browser.ts'
import { type Picture, waitForLint } from './world.ts'

export const REPLAYS: readonly Picture[] = [
  {
    name: 'plan',
    async open(page, { bad, own }) {
      await page.goto(`${bad.url}/replays/${own}`)
      await page.getByRole('row', { name: /Ready 420/ }).waitFor()
      await page.getByRole('link', { name: 'order-0', exact: true }).waitFor()
    },
  },
  {
    name: 'plan-select',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/replays/new?q=source%3Apayments+after%3A24h`)
      await page.getByRole('link', { name: 'order-179', exact: true }).waitFor()
    },
  },
  {
    name: 'policy',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/sources/orders/policy`)
      await page.getByText('The textbook policy reaches').waitFor({ timeout: 60_000 })
    },
  },
  {
    name: 'policy-invalid',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/sources/orders/policy?policy=%7B%22retry%22%3A1%7D`)
      await page.getByText('Cannot simulate this policy.').waitFor()
    },
  },
  {
    name: 'run-running',
    async open(page, { bad, running }) {
      await page.goto(`${bad.url}/replays/${running}`)
      await page.getByRole('button', { name: 'Pause p' }).waitFor()
    },
  },
  {
    name: 'run-paused',
    async open(page, { bad, paused }) {
      // Its planner is not a user of this server, so its approval has ended.
      await page.goto(`${bad.url}/replays/${paused}`)
      await page.getByRole('button', { name: 'Approve again and resume' }).waitFor()
    },
  },
  {
    name: 'replays',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/replays`)
      await page.getByText('Active').nth(1).waitFor()
    },
  },
  {
    name: 'approvals',
    async open(page, { bad, waiting }) {
      await page.goto(`${bad.url}/approvals?run=${waiting}`)
      await page.getByRole('button', { name: /^Approve/ }).waitFor()
    },
  },
  {
    name: 'plan-patch',
    async open(page, { bad, own, now }) {
      await page.goto(`${bad.url}/replays/${own}`)
      await page.getByRole('button', { name: 'Add a patch…' }).click()
      const patch = page.locator('.cm-editor').getByRole('textbox')
      await writeCode(patch, '[{ "op": "add", "path": "/currency", "value": EUR }]')
      await waitForLint(page, now)
      await patch.scrollIntoViewIfNeeded()
    },
  },
  {
    name: 'run-cancelled',
    async open(page, { bad, cancelled }) {
      await page.goto(`${bad.url}/replays/${cancelled}`)
      await page.getByText('Cancelled').first().waitFor()
    },
  },
]
