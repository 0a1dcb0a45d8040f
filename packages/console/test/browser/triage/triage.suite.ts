import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { launch } from '../browser.ts'
import { PATCH, type Sizes, type SourceName } from './causes.ts'
import type { HandsName } from './hands.ts'
import { approve, discard, expectCalm, expectCauses, expectGroups, plan } from './path.ts'
import { enter } from './people.ts'
import type { Effects } from './shop.ts'
import { commentsIn, openWorld, runsEnd, runsIn, statusesIn, type World } from './world.ts'

/** The most clicks of both people from the first page to a running replay of the right group. */
const CLICKS_MAX = 12
/** 20 min: the whole path with a loaded machine. */
const PATH_MS = 1_200_000

/** Three causes on three brokers: one is replayed with a canary, one repaired, one discarded. */
export function triage(sizes: Sizes): void {
  let browser: Browser
  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(() => browser?.close())

  test.for(['mouse', 'keyboard'] as const)(
    'dead letters of three causes are found, discarded, repaired and replayed by two people: %s',
    { timeout: PATH_MS },
    async (kind) => {
      expect(await triageAll(browser, sizes, kind)).toEqual([])
    },
  )

  test('a double click, the back button and a second tab replay nothing twice', {
    timeout: PATH_MS,
  }, async () => {
    expect(await replayOnce(browser)).toEqual(['cancelled', 'done'])
  })
}

const REASON = 'Duplicates, agreed with finance'

/** Returns the messages of the browser consoles. */
async function triageAll(
  browser: Browser,
  sizes: Sizes,
  kind: HandsName,
): Promise<readonly string[]> {
  const world = await openWorld(`redrive_console_triage_${kind}`, sizes)
  onTestFinished(() => world.end())
  const { stage } = world
  const { orders, payments, invoices } = sizes
  await expectGroups(world, sizes)
  const ada = await enter(browser, world, 'ada', kind)

  await expectCauses(ada, sizes)
  await plan(ada, 'orders', orders)
  const ben = await enter(browser, world, 'ben', kind)
  await approve(ben, 'orders', orders)
  await ada.page.getByText('planned by you, approved by ben').waitFor()
  const clicks = ada.clicks() + ben.clicks()
  expect(clicks).toBeLessThanOrEqual(CLICKS_MAX)
  // Each person presses several buttons, so a mouse without clicks was not recorded.
  expect(clicks > 0).toBe(kind === 'mouse')

  await plan(ada, 'payments', payments, PATCH)
  await approve(ben, 'payments', payments, '"EUR"')
  await discard(ada, 'invoices', invoices, REASON)

  await runsEnd(stage, '15m')
  await expectCalm(ada, sizes)
  expect(await statusesIn(stage)).toEqual([
    { source: 'invoices', status: 'discarded', count: invoices },
    { source: 'orders', status: 'resolved', count: orders },
    { source: 'payments', status: 'resolved', count: payments },
  ])
  const planned = { planner: 'ada', early: 0 }
  expect(await runsIn(stage)).toEqual([
    // An update of the plan replaces it.
    { ...planned, source: 'orders', state: 'cancelled', approver: null, items: orders },
    { ...planned, source: 'orders', state: 'done', approver: 'ben', items: orders },
    { ...planned, source: 'payments', state: 'cancelled', approver: null, items: payments },
    { ...planned, source: 'payments', state: 'done', approver: 'ben', items: payments },
  ])
  expect(await commentsIn(stage)).toEqual([
    { author: 'ada', text: `Discarded ${invoices} messages: ${REASON}` },
  ])
  const once = (count: number) => ({ rows: count, messages: count, replaysOfOne: 1 })
  await expectEffects(world, 'orders', { ...once(orders), currencies: ['CHF'] })
  await expectEffects(world, 'payments', { ...once(payments), currencies: ['EUR'] })
  await expectEffects(world, 'invoices', {
    ...{ rows: 0, messages: 0, replaysOfOne: 0, currencies: [] },
  })
  for (const person of [ada, ben]) {
    const events = person.pointerEvents()
    expect(events.includes('mousedown')).toBe(kind === 'mouse')
    expect(kind === 'keyboard' ? events : []).toEqual([])
    await person.close()
  }
  return [ada, ben].flatMap((person) => person.problems())
}

/** Expects an empty broker and these effects. A consumer of Kafka commits its offsets some time after its effects. */
async function expectEffects(
  { shop }: World,
  source: SourceName,
  effects: Omit<Effects, 'depth' | 'lag'>,
): Promise<void> {
  await expect.poll(() => shop.effects(source)).toEqual({ depth: 0, lag: 0, ...effects })
}

/** More than one canary stage, so that the run does not end with its first message. */
const SMALL: Sizes = { orders: 120, payments: 0, invoices: 0 }

/** Returns the states of all runs at the end. */
async function replayOnce(browser: Browser): Promise<readonly string[]> {
  const world = await openWorld('redrive_console_triage_once', SMALL)
  onTestFinished(() => world.end())
  const { stage } = world
  const states = async () => (await runsIn(stage)).map(({ state }) => state)
  const ada = await enter(browser, world, 'ada', 'mouse')
  const { page } = ada
  await page.getByRole('link', { name: 'Replay 120…' }).dblclick()
  await page.getByRole('row', { name: 'Ready 120' }).waitFor()
  expect(await states()).toEqual(['planned'])
  await ada.hands.type(page.getByLabel('Rate'), '500')
  const first = page.url()
  await page.getByRole('button', { name: 'Update plan' }).dblclick()
  await page.waitForURL((url) => url.href !== first)
  await page.getByText('Another person must approve it.').waitFor()
  expect(await states()).toEqual(['cancelled', 'planned'])

  const ben = await enter(browser, world, 'ben', 'mouse')
  await ben.hands.open('Approvals')
  const name = 'Approve 120 messages'
  await ben.page.getByRole('button', { name }).waitFor()
  const second = await ben.page.context().newPage()
  await second.goto(ben.page.url())
  await second.getByRole('button', { name }).focus()
  await Promise.all([
    ben.page.getByRole('button', { name }).dblclick(),
    second.keyboard.press('Enter'),
  ])
  for (const tab of [ben.page, second])
    await tab.getByRole('link', { name: 'Open the run' }).waitFor()
  await page.getByText('planned by you, approved by ben').waitFor()
  // The wizard replaced its own addresses: back is the screen before it, and forward the run.
  const run = page.url()
  await page.goBack()
  await page.waitForURL(`${stage.url}/`)
  await page.goForward()
  await page.waitForURL(run)
  await page.reload()
  await page.getByText('planned by you, approved by ben').waitFor()
  await ben.page.goBack()
  await ben.page.goForward()
  await runsEnd(stage, '3m')
  expect(await statusesIn(stage)).toEqual([{ source: 'orders', status: 'resolved', count: 120 }])
  await expectEffects(world, 'orders', {
    ...{ rows: 120, messages: 120, replaysOfOne: 1, currencies: ['CHF'] },
  })
  for (const person of [ada, ben]) await person.close()
  return states()
}
