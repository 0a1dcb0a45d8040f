import { answer, type Picture } from './world.ts'

export const SETTINGS: readonly Picture[] = [
  {
    name: 'audit',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/audit`)
      await page.getByText('Denied').first().waitFor()
      await page.getByRole('button', { name: 'Create token' }).first().click()
      await page.getByText('Previous').waitFor()
    },
  },
  {
    name: 'audit-error',
    async open(page, { bad }) {
      await answer(page, 503, 'unavailable', 'audit')
      await page.goto(`${bad.url}/audit`)
      await page.getByText('Cannot load the audit log.').waitFor()
    },
  },
  {
    name: 'audit-none',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/audit?q=source%3Anothing`)
      await page.getByText('No entry matches.').waitFor()
    },
  },
  {
    name: 'settings-tokens',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/settings/tokens`)
      await page.getByRole('button', { name: 'Revoke… laptop' }).waitFor()
      await page.getByRole('textbox', { name: 'Name' }).fill('nightly-report')
    },
  },
  {
    name: 'settings-people',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/settings/people?person=development`)
      await page.getByRole('button', { name: 'Revoke… laptop' }).waitFor()
    },
  },
  {
    name: 'settings-fingerprints',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/settings/fingerprints?text=invoice&group=paid+invoices`)
      await page.getByText('"lock timeout"').waitFor()
      await page.getByRole('button', { name: 'Dry run' }).last().click()
      await page.getByText(/open dead letters would move/).waitFor()
    },
  },
  {
    name: 'settings-masks',
    async open(page, { bad }) {
      await page.goto(`${bad.url}/settings/masks`)
      await page.getByText('/card/number').waitFor()
    },
  },
  {
    name: 'settings-tokens-error',
    async open(page, { bad }) {
      await answer(page, 503, 'unavailable', 'tokens')
      await page.goto(`${bad.url}/settings/tokens`)
      await page.getByText('Cannot load tokens.').waitFor()
    },
  },
  {
    name: 'settings-empty',
    async open(page, { calm }) {
      await page.goto(`${calm.url}/settings/fingerprints`)
      await page.getByText('The config has no rule.').waitFor()
    },
  },
  {
    name: 'sign-in',
    async open(page, { bad }) {
      await answer(page, 401, 'unauthenticated', 'me')
      await page.goto(`${bad.url}/groups`)
      await page.getByRole('heading', { name: /^Sign in/ }).waitFor()
    },
  },
]
