import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { countText } from '../../../src/words/numbers.ts'
import { CAUSES, type Sizes, type SourceName, SOURCES } from './causes.ts'
import type { Person } from './people.ts'
import type { World } from './world.ts'

const totalOf = (sizes: Sizes) => SOURCES.reduce((sum, source) => sum + sizes[source], 0)

/** Expects that the first screen and the list of groups show every cause with its count and an action. */
export async function expectCauses({ page, hands }: Person, sizes: Sizes): Promise<void> {
  const total = countText(totalOf(sizes))
  await page
    .getByRole('heading', { name: `${total} open dead letters. 3 groups need a decision.` })
    .waitFor()
  for (const source of SOURCES) {
    const { message, class: failureClass, code, suggestion, action } = CAUSES[source]
    const row = page.getByRole('article').filter({ hasText: message })
    await row.getByRole('link', { name: message }).waitFor()
    await row.getByRole('link', { name: `${action} ${countText(sizes[source])}` }).waitFor()
    const text = (await row.innerText()).replaceAll(/\s+/g, ' ')
    for (const part of [source, code, failureClass, countText(sizes[source])]) {
      expect(text.toLowerCase()).toContain(part.toLowerCase())
    }
    const todo = (await row.locator('.decision-todo').innerText()).replaceAll(/\s+/g, ' ')
    expect(todo.trim()).toMatch(suggestion)
  }
  await hands.open('Groups')
  await page.getByText(`3 groups, ${total} open dead letters`).waitFor()
  for (const source of SOURCES) {
    const row = page.getByRole('row', { name: CAUSES[source].message })
    const size = countText(sizes[source])
    // Open, and in total.
    expect(await row.getByRole('cell', { name: size, exact: true }).count()).toBe(2)
  }
}

/** Expects that the database has one group for each cause. */
export async function expectGroups({ stage }: World, sizes: Sizes): Promise<void> {
  const { groups } = await stage.catalog.groups({ limit: 200 })
  const found = groups.map((one) => ({
    ...{ source: one.source, title: one.title, class: one.class, code: one.code },
    ...{ open: one.openCount, count: one.count },
  }))
  const expected = SOURCES.map((source) => ({
    ...{ source, title: CAUSES[source].message },
    ...{ class: CAUSES[source].class, code: CAUSES[source].code },
    ...{ open: sizes[source], count: sizes[source] },
  }))
  const inOrder = (one: { source: string }, other: { source: string }) =>
    one.source < other.source ? -1 : 1
  expect(found.toSorted(inOrder)).toEqual(expected.toSorted(inOrder))
}

const action = (page: Page, source: SourceName, size: number) =>
  page.getByRole('link', { name: `${CAUSES[source].action} ${countText(size)}` })

/** 2,000 messages per second: more than the brokers and consumers of one machine need. */
const RATE = '2000'

/** Plans the replay of a group from the first screen. With a patch, it repairs the messages. */
export async function plan(
  { page, hands }: Person,
  source: SourceName,
  size: number,
  patch?: string,
): Promise<void> {
  await hands.open('Overview')
  await hands.press(action(page, source, size))
  await page.getByRole('heading', { name: `Replay ${countText(size)} to ${source}` }).waitFor()
  await page.waitForURL(/\/replays\/[0-9a-f-]{36}$/)
  await page.getByRole('row', { name: `Ready ${countText(size)}` }).waitFor()
  const first = page.url()
  if (patch !== undefined) {
    await hands.press(page.getByRole('button', { name: 'Add a patch…' }))
    await hands.type(page.getByLabel('JSON Patch for each body'), patch)
  }
  await hands.type(page.getByLabel('Rate'), RATE)
  await hands.press(page.getByRole('button', { name: 'Update plan' }))
  await page.waitForURL((url) => url.href !== first)
  const title = patch === undefined ? 'Replay' : 'Repair and replay'
  await page.getByRole('heading', { name: `${title} ${countText(size)} to ${source}` }).waitFor()
  await page.getByText('Another person must approve it.').waitFor()
}

/** Chooses a plan and approves it. `shown` is a text of the change that the approver reads before. */
export async function approve(
  { page, hands }: Person,
  source: SourceName,
  size: number,
  shown?: string,
): Promise<void> {
  const title = `${shown === undefined ? 'Replay' : 'Repair and replay'} ${countText(size)} to ${source}`
  await hands.open('Approvals')
  const waiting = page.getByRole('region', { name: 'Awaiting approval' })
  await hands.press(waiting.getByRole('link', { name: title }))
  await page.getByRole('heading', { name: title, level: 2, exact: true }).waitFor()
  if (shown !== undefined) {
    await hands.press(page.getByRole('button', { name: 'Show the change' }))
    await page.locator('[data-token=string]', { hasText: shown }).waitFor()
  }
  await hands.press(page.getByRole('button', { name: `Approve ${countText(size)} messages` }))
  await page.getByRole('link', { name: 'Open the run' }).waitFor()
}

/** Discards a group from the first screen, with a reason. */
export async function discard(
  { page, hands }: Person,
  source: SourceName,
  size: number,
  reason: string,
): Promise<void> {
  const count = countText(size)
  await hands.open('Overview')
  await hands.press(action(page, source, size))
  await page.getByRole('heading', { name: CAUSES[source].message, level: 1 }).waitFor()
  await page.getByText(`${count} messages since`).waitFor()
  await hands.press(page.getByRole('button', { name: 'Discard…' }))
  const dialog = page.getByRole('dialog', { name: `Discard ${count} messages` })
  await hands.type(dialog.getByLabel('Reason'), reason)
  const confirm = dialog.getByRole('button', { name: `Discard ${count} messages` })
  // The count must be typed before many messages are discarded.
  expect(await confirm.getAttribute('aria-disabled')).toBe('true')
  await hands.type(dialog.getByLabel(`Type ${count} to confirm`), String(size))
  await hands.press(confirm)
  await dialog.waitFor({ state: 'detached' })
  await page.getByText('None is open.').waitFor()
}

/** Expects that the run and the first screen show the end. */
export async function expectCalm({ page, hands }: Person, sizes: Sizes): Promise<void> {
  await hands.open('Overview')
  await page.getByRole('heading', { name: 'No open dead letters.' }).waitFor()
  await hands.open('Replays')
  const size = countText(sizes.orders)
  // Newest first: the plan that the update replaced is below.
  await hands.press(page.getByRole('link', { name: `Replay ${size} to orders` }).first())
  await page.getByText(/^done after/).waitFor()
  await page.getByText('planned by you, approved by ben').waitFor()
  await page
    .getByRole('listitem')
    .filter({ hasText: `Resolved ${size}` })
    .waitFor()
}
