import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  expectAccessible,
  expectNoSidewaysScroll,
  launch,
  NARROW,
  openTab,
  WIDE,
} from './browser.ts'
import { openStage, seed, type Stage } from './stage.ts'

let browser: Browser
let stage: Stage
let refused: string
const MINUTE_MS = 60_000
const many = (count: number, ageMs: number) =>
  Array.from({ length: count }, (_, at) => Date.now() - ageMs - at * 1_000)

beforeAll(async () => {
  browser = await launch()
  stage = await openStage('redrive_console_groups')
  refused = await seed(stage.catalog, {
    ...{ source: 'orders', class: 'transient', code: 'ECONNREFUSED' },
    message: 'connect ECONNREFUSED payments-api',
    times: many(120, 6 * MINUTE_MS),
  })
  await seed(stage.catalog, {
    ...{ source: 'events', class: 'business', code: 'DUPLICATE_INVOICE' },
    message: 'invoice is already paid',
    times: many(7, 16 * MINUTE_MS),
  })
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

test('the address is the state of the list', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(`${stage.url}/groups`)
  await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('class:business')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${stage.url}/groups?q=class%3Abusiness`)
  await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor({ state: 'detached' })
  await page.goBack()
  await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor()
  await page.goto(`${stage.url}/groups?view=muted&q=class%3Aschema`)
  await page.getByText('No group matches.').waitFor()
  await page.getByRole('button', { name: 'Clear the filter' }).click()
  await page.getByText('No group in the view "Muted".').waitFor()
  await page.goto(`${stage.url}/groups?q=clas%3Aschema`)
  await page.getByText(/Unknown field "clas"/).waitFor()
  expect(messages).toEqual([])
  await close()
})

test('new groups do not move rows until they are shown', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/groups?by=source`)
  await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor()
  await seed(stage.catalog, {
    ...{ source: 'refunds', class: 'unknown', message: 'a new problem' },
    times: many(200, MINUTE_MS),
  })
  await page.getByRole('button', { name: '1 new group. Show' }).click()
  await page.getByRole('link', { name: 'a new problem' }).waitFor()
  expect(await page.getByRole('button', { name: 'refunds: fold' }).count()).toBe(1)
  await close()
})

test('a group is opened, assigned and discarded with a reason, by keyboard alone', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(`${stage.url}/groups?q=source%3Aevents`)
  await page.getByRole('link', { name: 'invoice is already paid' }).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('x')
  await page.getByText('1 group selected').waitFor()
  await page.keyboard.press('Escape')
  await page.getByText('1 group selected').waitFor({ state: 'detached' })
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'invoice is already paid', level: 1 }).waitFor()
  await page.getByText(/^Suggested: Discard or assign\./).waitFor()
  await page.keyboard.press('a')
  await page.getByText('Assigned to you').waitFor()
  await page.keyboard.press(']')
  await page.waitForURL(/tab=why/)
  await page.getByText('Messages are in this group because these facts are equal:').waitFor()
  await page.keyboard.press('d')
  const dialog = page.getByRole('dialog', { name: 'Discard 7 messages' })
  await dialog.getByLabel('Reason').fill('Duplicates, agreed with finance')
  await expectAccessible(page, 'discard dialog')
  await dialog.getByRole('button', { name: 'Discard 7 messages' }).press('Enter')
  await page.getByText('Discarded 7 messages: Duplicates, agreed with finance').waitFor()
  await page.getByText(/None is open\./).waitFor()
  const { deadLetters } = await stage.catalog.deadLetters({
    sources: ['events'],
    statuses: ['discarded'],
    after: 0,
  })
  expect(deadLetters).toHaveLength(7)
  expect(messages).toEqual([])
  await close()
})

test('a change of another user is reported, and nothing is overwritten', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/groups/${refused}`)
  await page.getByRole('heading', { name: /ECONNREFUSED/, level: 1 }).waitFor()
  await page.keyboard.press('m')
  const dialog = page.getByRole('dialog', { name: 'Mute 1 group' })
  await dialog.waitFor()
  const before = await stage.catalog.group(refused)
  if (before === undefined) throw new Error('The group does not exist.')
  await stage.catalog.changeGroup(refused, { owner: 'ben' }, before)
  await dialog.getByRole('button', { name: 'Mute 1 group' }).click()
  await dialog.getByText(/Another user changed it after you opened it/).waitFor()
  expect((await stage.catalog.group(refused))?.state).toBe('open')
  await close()
})

test('an unknown group is not found', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${stage.url}/groups/0190163d-8694-739b-aea5-966c26f8ad91`)
  await page.getByText('Not found, or no permission to view it.').waitFor()
  expect(await page.title()).toBe('Not found · Redrive')
  await close()
})

test.for([
  ['light', WIDE],
  ['dark', NARROW],
] as const)('has no accessibility problem: %s, %o', async ([colorScheme, viewport]) => {
  const { page, messages, close } = await openTab(browser, { colorScheme, viewport })
  await page.goto(`${stage.url}/groups`)
  await page.getByRole('link', { name: /ECONNREFUSED/ }).waitFor()
  await expectAccessible(page, 'groups')
  await expectNoSidewaysScroll(page, 'groups')
  await page.goto(`${stage.url}/groups/${refused}`)
  await page.getByRole('cell', { name: 'order-0', exact: true }).waitFor()
  await expectAccessible(page, 'group')
  await expectNoSidewaysScroll(page, 'group')
  expect(messages).toEqual([])
  await close()
})
