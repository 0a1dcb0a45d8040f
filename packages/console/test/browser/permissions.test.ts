import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectAccessible, launch, openTab } from './browser.ts'
import { openStage, seed, type Stage } from './stage.ts'

let browser: Browser
let stage: Stage
let group: string
/** An approver, who may not see unmasked bodies. */
let approver: Stage

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
beforeAll(async () => {
  const development = { name: 'Vera Lind', roles: ['approver'] }
  approver = await openStage('redrive_console_approver', { auth: { development } })
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
  await approver?.end()
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

/** A new dead letter of the approver's server. */
const oneOf = (source: string) =>
  seed(approver.catalog, {
    ...{ source, class: 'schema', message: `expected string at /currency of ${source}` },
    times: [Date.now()],
  })

test('an approver sees no approval of a change that they cannot see', async () => {
  const { page, messages, close } = await openTab(browser)
  const { replays } = approver.catalog
  const { deadLetters } = await approver.catalog.deadLetters({
    groups: [await oneOf('edited')],
    after: 0,
  })
  const selection = { ids: deadLetters.map(({ id }) => id) }
  const change = { edit: Buffer.from('{"order":1,"currency":"EUR"}') }
  const edited = await replays.plan({ selection, change, by: 'ben' })
  const approve = page.getByRole('button', { name: /^Approve/ })
  const sentence = page.getByText('Permission view_unmasked is required on edited:')
  for (const path of [`/replays/${edited.id}`, `/approvals?run=${edited.id}`]) {
    await page.goto(approver.url + path)
    await sentence.waitFor()
    expect(await approve.count()).toBe(0)
    await expectAccessible(page, path)
  }
  // A plan without a hidden change is approved.
  const plain = await replays.plan({ selection: { group: await oneOf('plain') }, by: 'ben' })
  await page.goto(`${approver.url}/approvals?run=${plain.id}`)
  await approve.click()
  await page.getByRole('link', { name: 'Open the run' }).waitFor()
  expect((await replays.run(plain.id))?.state).toBe('running')
  expect(messages).toEqual([])
  await close()
})

test('a paused run whose approval has ended is approved again, and not resumed', async () => {
  const { page, messages, close } = await openTab(browser)
  const { replays } = approver.catalog
  // The planner is not a user of this server, so the approval of the run ends with its pause.
  const run = await replays.plan({ selection: { group: await oneOf('paused') }, by: 'leaver' })
  await replays.approve(run.id, { by: 'ada', hash: run.hash })
  await replays.pause(run.id, { by: 'ben' })
  await page.goto(`${approver.url}/replays/${run.id}`)
  await page.getByText('no longer has permission "replay"').waitFor()
  expect(await page.getByRole('button', { name: 'Resume…' }).count()).toBe(0)
  await expectAccessible(page, 'ended approval')
  await page.getByRole('button', { name: 'Approve again and resume' }).click()
  await page.getByText('Running', { exact: true }).waitFor()
  expect((await replays.run(run.id))?.state).toBe('running')
  expect(messages).toEqual([])
  await close()
})
