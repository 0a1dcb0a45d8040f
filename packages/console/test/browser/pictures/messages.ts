import type { Page } from 'playwright-core'
import { writeCode } from '../browser.ts'
import { answer, type Picture, waitForLint, type World } from './world.ts'

async function openEditor(page: Page, { bad }: World): Promise<void> {
  await page.goto(`${bad.url}/messages?q=source%3Apayments`)
  await page.getByRole('link', { name: 'order-179', exact: true }).click()
  await page.getByRole('link', { name: 'Edit and replay…' }).click()
  await page.getByRole('textbox', { name: 'Reason' }).fill('Ticket 4411')
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Reveal/ })
    .click()
  await page.locator('.cm-editor').getByRole('textbox', { name: 'Body', exact: true }).waitFor()
}

export const MESSAGES: readonly Picture[] = [
  {
    name: 'messages',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/messages?q=source%3Apayments`)
      await page.getByRole('link', { name: 'order-179', exact: true }).waitFor()
      await page.keyboard.press('j')
    },
  },
  {
    name: 'messages-selected',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/messages`)
      await page.getByRole('checkbox', { name: 'Select order-179', exact: true }).first().check()
      await page.getByText('1 message selected').waitFor()
    },
  },
  {
    name: 'messages-none',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/messages?q=class%3Aunknown`)
      await page.getByText('No message matches.').waitFor()
    },
  },
  {
    name: 'messages-error',
    async open(page, { bad }) {
      await answer(page, 503, 'unavailable')
      await page.goto(`${bad.url}/messages`)
      await page.getByText('Cannot load messages.').waitFor()
    },
  },
  {
    name: 'message',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/messages?q=source%3Apayments`)
      await page.getByRole('link', { name: 'order-179', exact: true }).click()
      await page.getByText('2 values masked').waitFor()
      await page.getByRole('button', { name: 'Next message' }).waitFor()
    },
  },
  {
    name: 'message-revealed',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/messages?q=source%3Apayments`)
      await page.getByRole('link', { name: 'order-179', exact: true }).click()
      await page.getByRole('button', { name: 'Reveal…' }).click()
      await page.getByRole('textbox', { name: 'Reason' }).fill('Ticket 4411')
      await page
        .getByRole('dialog')
        .getByRole('button', { name: /^Reveal/ })
        .click()
      await page.getByText('"5500000000000004"').waitFor()
    },
  },
  { name: 'edit', open: openEditor },
  {
    name: 'edit-wrong',
    async open(page, world) {
      await openEditor(page, world)
      const body = page.locator('.cm-editor').getByRole('textbox', { name: 'Body', exact: true })
      await writeCode(body, '{ "id": "pay_20931", "amount": }')
      await waitForLint(page, world.now)
    },
  },
]
