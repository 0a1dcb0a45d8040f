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

test('two groups are merged, separated again and split, with reasons', async () => {
  const cause = { source: 'ledger', class: 'integration', code: 'HTTP_402' } as const
  const stays = await seed(stage.catalog, {
    ...{ ...cause, message: 'acquirer elavon declined the payment' },
    times: many(5, 9 * MINUTE_MS),
  })
  const joins = await seed(stage.catalog, {
    ...{ ...cause, message: 'acquirer worldline rejected it' },
    times: many(3, 8 * MINUTE_MS),
  })
  const { page, messages, close } = await openTab(browser)
  await page.goto(`${stage.url}/groups?q=source%3Aledger`)
  await page.getByRole('checkbox', { name: /^Select acquirer elavon/ }).check()
  await page.getByRole('checkbox', { name: /^Select acquirer worldline/ }).check()
  await page.getByRole('button', { name: 'Merge 2…' }).click()
  const merge = page.getByRole('dialog', { name: 'Merge 2 groups' })
  await merge.getByText('Same source, class and code.').waitFor()
  await merge.getByText('Redrive moves 3 open messages into one group.').waitFor()
  await expectAccessible(page, 'merge dialog')
  await merge.getByRole('textbox', { name: 'Reason' }).fill('One contract, one runbook')
  await merge.getByRole('button', { name: 'Merge 2 groups' }).click()
  await page.getByText('Merged 2 groups').waitFor()
  expect(await stage.catalog.group(stays)).toMatchObject({ openCount: 8, mergedCount: 1 })

  await page.goto(`${stage.url}/groups/${stays}?tab=why`)
  const list = page.getByRole('region', { name: 'Merged groups' })
  await list.getByRole('cell', { name: 'One contract, one runbook' }).waitFor()
  await expectAccessible(page, 'merged groups')
  await list.getByRole('button', { name: 'Separate…' }).click()
  const separate = page.getByRole('dialog', { name: 'Separate a merged group' })
  await separate.getByRole('textbox', { name: 'Reason' }).fill('Another contract after all')
  await separate.getByRole('button', { name: 'Separate group' }).click()
  await page.getByText('Separated a group with 3 open messages').waitFor()
  expect(await stage.catalog.group(stays)).toMatchObject({ openCount: 5, mergedCount: 0 })
  expect(await stage.catalog.group(joins)).toMatchObject({ openCount: 3 })

  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Split…' }).click()
  const split = page.getByRole('dialog', { name: 'Split group' })
  await split.getByRole('textbox', { name: 'Filter' }).fill('clas:transient')
  await split.getByRole('textbox', { name: 'Name of the new group' }).fill('Declined by elavon')
  await split.getByRole('textbox', { name: 'Reason' }).fill('Its own runbook')
  await split.getByRole('button', { name: 'Split group' }).click()
  await split.getByRole('alert').waitFor()
  expect(await stage.catalog.group(stays)).toMatchObject({ openCount: 5 })
  await split.getByRole('textbox', { name: 'Filter' }).fill('code:HTTP_402 "elavon"')
  await split.getByRole('button', { name: 'Split group' }).click()
  await page.getByRole('heading', { name: 'Declined by elavon', level: 1 }).waitFor()
  expect(await stage.catalog.group(stays)).toMatchObject({ openCount: 0 })
  expect(messages.filter((text) => !text.includes('400'))).toEqual([])
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
