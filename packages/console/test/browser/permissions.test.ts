import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectAccessible, launch, openTab } from './browser.ts'
import { openStage, seed, type Stage } from './stage.ts'

let browser: Browser
let stage: Stage
let group: string

/** Names of buttons that change a run. */
const ACTIONS =
  /^(Pause p|Resume|Cancel|Approve|Start|Update|Withdraw|Include|Copy link|Plan again)/

beforeAll(async () => {
  browser = await launch()
  const development = { name: 'Vic Lang', roles: ['viewer'] }
  stage = await openStage('redrive_console_viewer', { auth: { development } })
  group = await seed(stage.catalog, {
    ...{ source: 'orders', class: 'transient', message: 'connect ECONNREFUSED payments-api' },
    times: Array.from({ length: 120 }, (_, at) => Date.now() - 600_000 - at),
  })
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

test('a viewer sees no action that the API would refuse', async () => {
  const { page, messages, close } = await openTab(browser)
  const actions = page.getByText(/^(Replay|Discard|Mute|Resolve|Assign)\b.*(…|to me)$/)
  await page.goto(stage.url)
  await page.getByRole('link', { name: 'Review 120' }).waitFor()
  expect(await actions.count()).toBe(0)
  expect(await page.getByRole('link', { name: 'Audit' }).count()).toBe(0)
  expect(await page.getByRole('link', { name: 'Approvals' }).count()).toBe(0)
  await page.goto(`${stage.url}/groups/${group}`)
  await page.getByRole('cell', { name: 'order-0', exact: true }).waitFor()
  expect(await actions.count()).toBe(0)
  expect(await page.getByRole('textbox', { name: 'Comment' }).count()).toBe(0)
  // Keys of actions do nothing.
  for (const key of ['d', 'm', 'a', 'r']) await page.keyboard.press(key)
  expect(await page.getByRole('dialog').count()).toBe(0)
  expect(new URL(page.url()).pathname).toBe(`/groups/${group}`)
  await expectAccessible(page, 'viewer')
  await page.goto(`${stage.url}/groups`)
  await page.getByRole('checkbox', { name: /Select connect/ }).check()
  await page.getByText('1 group selected').waitFor()
  expect(await actions.count()).toBe(0)
  expect(messages).toEqual([])
  await close()
})

test('a viewer sees messages and runs, and no action on them', async () => {
  const { page, messages, close } = await openTab(browser)
  await page.goto(`${stage.url}/messages`)
  await page.getByRole('checkbox', { name: 'Select order-0', exact: true }).check()
  await page.getByText('1 message selected').waitFor()
  // The navigation has the word Replays.
  expect(await page.locator('main').getByRole('button', { name: /…$/ }).count()).toBe(0)
  await page.getByRole('link', { name: 'order-0', exact: true }).click()
  await page.getByText('Permission view_payload is required on orders.').waitFor()
  expect(
    await page
      .locator('main')
      .getByText(/^(Replay|Discard|Edit|Reveal)/)
      .count(),
  ).toBe(0)
  expect(await page.getByRole('textbox', { name: 'Comment' }).count()).toBe(0)
  const { replays } = stage.catalog
  const planned = await replays.plan({ selection: { group }, by: 'ben' })
  await page.goto(`${stage.url}/replays/${planned.id}`)
  await page.getByRole('row', { name: /Ready 120/ }).waitFor()
  expect(await page.locator('main').getByRole('button', { name: ACTIONS }).count()).toBe(0)
  expect(await page.locator('main').getByRole('textbox').count()).toBe(0)
  await replays.approve(planned.id, { by: 'ada', hash: planned.hash })
  await page.getByText('Running', { exact: true }).waitFor()
  expect(await page.locator('main').getByRole('button', { name: ACTIONS }).count()).toBe(0)
  await page.keyboard.press('p')
  expect((await replays.run(planned.id))?.state).toBe('running')
  await expectAccessible(page, 'run of a viewer')
  expect(messages).toEqual([])
  await close()
})
