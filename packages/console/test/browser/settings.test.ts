import { createClient } from '@redrive/api'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  expectAccessible,
  expectNoSidewaysScroll,
  launch,
  NARROW,
  type openTab,
  WIDE,
} from './browser.ts'
import { ISSUER, OIDC, openAs as openAsOn, signIn } from './session.ts'
import { openStage, seed, type Stage } from './stage.ts'

/** The sources are not reached: the server runs only the API. */
const QUEUE = { rabbitmq: { url: 'amqp://127.0.0.1:1', queue: 'orders' } }
const CONFIG = {
  access: [
    { people: ['lena'], roles: ['admin'], sources: ['*'] },
    { people: ['chen', 'ada'], roles: ['operator'], sources: ['*'] },
  ],
  sources: {
    orders: { ...QUEUE, mask: ['/card/number'], maskHeaders: ['X-Customer'] },
  },
  fingerprints: [{ name: 'Locks', match: { text: 'lock timeout' }, group: 'lock timeouts' }],
  masking: { detectors: ['card', 'iban'] },
}

let browser: Browser
let stage: Stage

const openAs = (subject: string, look: Parameters<typeof openTab>[1] = {}) =>
  openAsOn(browser, stage, subject, { look })

const isOpen = async (table: 'session' | 'token', id: string) => {
  const { rowCount } = await stage.pool.query(
    `select 1 from redrive_server.${table} where id = $1`,
    [id],
  )
  return rowCount === 1
}

beforeAll(async () => {
  browser = await launch()
  stage = await openStage('redrive_console_settings', { auth: { oidc: OIDC }, config: CONFIG })
  for (const [message, count] of [
    ['lock timeout on ledger', 3],
    ['invoice is paid', 2],
  ] as const) {
    await seed(stage.catalog, {
      ...{ source: 'orders', class: 'business', code: 'E1', message },
      times: Array.from({ length: count }, () => Date.now() - 60_000),
    })
  }
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

/** Creates a token in the page and returns its secret. */
async function createToken(page: Page, name: string): Promise<string> {
  await page.goto(`${stage.url}/settings`)
  await page.waitForURL(`${stage.url}/settings/tokens`)
  await page.getByRole('textbox', { name: 'Name' }).fill(name)
  await page.getByText(`redrive token create '${name}' --allow view`).waitFor()
  await page.getByRole('button', { name: 'Create token' }).click()
  await page.getByText(`Token ${name} created.`).waitFor()
  return page.getByText(/^rdv_/).innerText()
}

test('a token is created, works, is revoked, and is then rejected', async () => {
  const { page, messages, close } = await openAs('lena')
  const secret = await createToken(page, 'ci-orders')
  const client = createClient({ url: stage.url, token: secret })
  expect(await client.call('me', {})).toMatchObject({
    via: 'token',
    grants: [{ actions: ['view'], sources: ['*'] }],
  })
  // Only the page has the secret, and only until it is left.
  await page.reload()
  await page.getByRole('button', { name: 'Revoke… ci-orders' }).waitFor()
  expect(await page.getByText(/^rdv_/).count()).toBe(0)
  await page.getByRole('button', { name: 'Revoke… ci-orders' }).click()
  const dialog = page.getByRole('dialog', { name: 'Revoke token ci-orders' })
  await expectAccessible(page, 'revoke dialog')
  await dialog.getByRole('button', { name: 'Revoke token', exact: true }).click()
  await page.getByText('You have no token.').waitFor()
  await expect(client.call('me', {})).rejects.toMatchObject({ problem: { status: 401 } })
  expect(messages).toEqual([])
  await close()
})

test('the reasons of the server are shown, and the input stays', async () => {
  const { page, close } = await openAs('lena')
  await page.goto(`${stage.url}/settings/tokens`)
  await page.getByRole('textbox', { name: 'Name' }).fill('robot')
  const checkbox = page.getByRole('checkbox', { name: /An autonomous program/ })
  await checkbox.check()
  await page.getByRole('textbox', { name: /Expires after days/ }).fill('91')
  const create = page.getByRole('button', { name: /^Create token/ })
  expect(await create.getAttribute('title')).toBe('Enter 1 to 90 days.')
  await page.getByRole('textbox', { name: /Expires after days/ }).fill('7')
  await page.route('**/api/v1/tokens', (route) =>
    route.request().method() === 'GET' ? route.continue() : route.abort(),
  )
  await create.click()
  await page.getByText('The server did not respond.').waitFor()
  await page.unroute('**/api/v1/tokens')
  expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('robot')
  await create.click()
  await page.getByText('Token robot created.').waitFor()
  const { rows } = await stage.pool.query(
    'select is_agent from redrive_server.token where name = $1',
    ['robot'],
  )
  expect(rows).toEqual([{ is_agent: true }])
  await close()
})

test('an operator has no page of people, and gets only own permissions', async () => {
  const before = await stage.pool.query('select count(*)::int as n from redrive_server.audit')
  const { page, close } = await openAs('ada')
  await page.goto(`${stage.url}/settings/people`)
  await page.getByText('Permission configure is required on all sources.').waitFor()
  expect(await page.getByRole('tab', { name: 'People and sessions' }).count()).toBe(0)
  await page.goto(`${stage.url}/settings/tokens`)
  await page.getByRole('checkbox', { name: /^replay:/ }).waitFor()
  for (const action of ['approve', 'configure', 'export', 'view_unmasked'])
    expect(await page.getByRole('checkbox', { name: new RegExp(`^${action}:`) }).count()).toBe(0)
  await page.goto(`${stage.url}/audit`)
  await page.getByText('Permission configure is required on all sources.').waitFor()
  const after = await stage.pool.query('select count(*)::int as n from redrive_server.audit')
  // No request was denied, so none was recorded.
  expect(after.rows).toEqual(before.rows)
  await close()
})

test('an administrator ends a session, and then all access of a person', async () => {
  const other = await openAs('chen')
  await other.page.goto(stage.url)
  await other.page.getByRole('link', { name: 'Overview' }).waitFor()
  const second = await signIn(stage, 'chen')
  const secret = await createToken(other.page, 'laptop')
  const { page, messages, close } = await openAs('lena')
  await page.goto(`${stage.url}/settings/people?person=${encodeURIComponent(`${ISSUER}#chen`)}`)
  await page.getByRole('button', { name: 'End session…' }).first().waitFor()
  expect(await page.getByRole('button', { name: 'End session…' }).count()).toBe(2)
  await page.getByRole('button', { name: 'End session…' }).last().click()
  await page.getByRole('dialog').getByRole('button', { name: 'End session', exact: true }).click()
  await expect.poll(() => page.getByRole('button', { name: 'End session…' }).count()).toBe(1)
  const open = await Promise.all([isOpen('session', other.id), isOpen('session', second.id)])
  expect(open.filter((one) => one)).toHaveLength(1)
  await page.getByRole('button', { name: /^Revoke access… of chen/ }).click()
  const dialog = page.getByRole('dialog', { name: 'Revoke access of chen of Shop' })
  await dialog.getByText('1 session and 1 token of').waitFor()
  await expectAccessible(page, 'revoke access')
  await dialog.getByRole('button', { name: 'Revoke access', exact: true }).click()
  await page.getByRole('button', { name: /^Revoke access… of chen/ }).waitFor({ state: 'detached' })
  expect([await isOpen('session', other.id), await isOpen('session', second.id)]).toEqual([
    false,
    false,
  ])
  const client = createClient({ url: stage.url, token: secret })
  await expect(client.call('me', {})).rejects.toMatchObject({ problem: { status: 401 } })
  await other.page.reload()
  await other.page.getByRole('link', { name: 'Continue with id.shop.example' }).waitFor()
  expect(messages).toEqual([])
  await other.close()
  await close()
})

test('the page of people is loaded once, because each load is in the audit log', async () => {
  const { page, close } = await openAs('lena')
  const loads = () =>
    stage.pool
      .query(`select count(*)::int as n from redrive_server.audit where operation = 'listSessions'`)
      .then(({ rows }) => (rows[0] as { n: number }).n)
  const before = await loads()
  await page.goto(`${stage.url}/settings/people`)
  await page.getByText('People with access').waitFor()
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`)
  await page.getByRole('tab', { name: 'API tokens' }).click()
  await page.getByRole('tab', { name: 'People and sessions' }).click()
  await page.getByText('People with access').waitFor()
  expect((await loads()) - before).toBe(1)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await expect.poll(async () => (await loads()) - before).toBe(2)
  await close()
})

test('a rule is tried from its address, and the rules of the config are applied with a reason', async () => {
  const { page, messages, close } = await openAs('lena')
  await page.goto(`${stage.url}/settings/fingerprints?text=invoice+*+paid&group=paid+invoices`)
  await page.getByText('if message contains "lock timeout"').waitFor()
  await page.getByRole('button', { name: 'Dry run' }).last().click()
  const result = page.getByRole('region', { name: 'Dry run of paid invoices' })
  await result.getByText('5 of 5 open dead letters would move.').waitFor()
  await result.getByRole('link', { name: 'invoice is paid' }).waitFor()
  await page
    .getByText(
      '- {"name":"paid invoices","match":{"text":"invoice * paid"},"group":"paid invoices"}',
    )
    .waitFor()
  await page.getByRole('button', { name: 'Apply to open dead letters…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Apply the rules to open dead letters' })
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('one group for locks')
  await expectAccessible(page, 'apply dialog')
  await dialog.getByRole('button', { name: 'Move 3' }).click()
  await page.getByText('Moved 3 dead letters').waitFor()
  const { groups } = await stage.catalog.groups({ sources: ['orders'], limit: 200 })
  expect(
    groups
      .filter(({ openCount }) => openCount > 0)
      .map(({ title, openCount }) => `${title} ${openCount}`),
  ).toEqual(expect.arrayContaining(['lock timeouts 3', 'invoice is paid 2']))
  expect(messages).toEqual([])
  await close()
})

test('masks and detectors are those of the config', async () => {
  const { page, close } = await openAs('ada')
  await page.goto(`${stage.url}/settings/masks`)
  await page.getByText('/card/number').waitFor()
  await page.getByText('x-customer').waitFor()
  const row = (name: string) => page.getByRole('row').filter({ hasText: name })
  expect(await row('Card number').textContent()).toContain('On')
  expect(await row('E-mail address').textContent()).toContain('Off')
  await close()
})

test.for([
  ['light', WIDE],
  ['dark', NARROW],
] as const)('has no accessibility problem: %s, %o', async ([colorScheme, viewport]) => {
  const { page, messages, close } = await openAs('lena', { colorScheme, viewport })
  const person = encodeURIComponent(`${ISSUER}#lena`)
  for (const [path, text] of [
    ['tokens', 'Your tokens'],
    [`people?person=${person}`, 'People with access'],
    ['fingerprints?code=E1&group=e1', 'Try a rule'],
    ['masks', 'Detectors'],
  ] as const) {
    await page.goto(`${stage.url}/settings/${path}`)
    await page.getByText(text, { exact: true }).first().waitFor()
    await expectAccessible(page, path)
    await expectNoSidewaysScroll(page, path)
  }
  expect(messages).toEqual([])
  await close()
})
