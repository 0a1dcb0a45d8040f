import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectAccessible, launch, openTab } from './browser.ts'
import { giveCookie, ISSUER, OIDC, openAs, signIn } from './session.ts'
import { openStage, seed, type Stage } from './stage.ts'

let browser: Browser
/** One person may plan and approve here, without signing in. */
let alone: Stage
/** Users sign in here. */
let shared: Stage

beforeAll(async () => {
  browser = await launch()
  alone = await openStage('redrive_console_recovery', { config: { approval: 'anyone' } })
  const access = [
    { people: ['chen'], roles: ['operator'], sources: ['*'] },
    { people: ['orla'], roles: ['viewer'], sources: ['*'] },
    { groups: ['on-call'], roles: ['operator'], sources: ['*'] },
  ]
  shared = await openStage('redrive_console_recovery_shared', {
    ...{ auth: { oidc: OIDC }, config: { access } },
  })
})
afterAll(async () => {
  await browser?.close()
  await alone?.end()
  await shared?.end()
})

const cause = (stage: Stage, source: string, count = 3) =>
  seed(stage.catalog, {
    ...{ source, class: 'transient', message: `connect ECONNREFUSED ${source}` },
    times: Array.from({ length: count }, (_, at) => Date.now() - 600_000 - at),
  })

const idOf = (page: Page) => new URL(page.url()).pathname.split('/').at(-1) ?? ''
const rate = (page: Page) => page.getByLabel('Rate')
const note = (page: Page) => page.getByLabel('Note for the approver')
const update = (page: Page) => page.getByRole('button', { name: /^Update plan/ })
const start = (page: Page) => page.getByRole('button', { name: /^Start replay of/ })
const pause = (page: Page) => page.getByRole('button', { name: 'Pause p' })

/** Opens the plan of a new cause. */
async function openPlan(page: Page, stage: Stage, source: string): Promise<string> {
  const group = await cause(stage, source)
  await page.goto(`${stage.url}/replays/new?group=${group}`)
  await page.waitForURL(/\/replays\/[0-9a-f-]{36}$/)
  await page.getByRole('row', { name: /Ready 3/ }).waitFor()
  return idOf(page)
}

/** Opens the plan of a new cause, and fills fields that are not in a plan yet. */
async function fillPlan(page: Page, stage: Stage, source: string): Promise<string> {
  const id = await openPlan(page, stage, source)
  await rate(page).fill('7')
  await note(page).fill('Rolled back at 02:57')
  return id
}

async function expectFields(page: Page): Promise<void> {
  expect(await rate(page).inputValue()).toBe('7')
  expect(await note(page).inputValue()).toBe('Rolled back at 02:57')
}

/** Updates the plan and expects that the database has what was typed. */
async function expectUpdated(page: Page, { catalog }: Stage, before: string): Promise<void> {
  await update(page).click()
  await page.waitForURL((url) => !url.pathname.endsWith(before))
  const run = await catalog.replays.run(idOf(page))
  expect(run).toMatchObject({
    ...{ state: 'planned', note: 'Rolled back at 02:57', options: { ratePerSecond: 7 } },
  })
}

/** Runs of a source that were started, and how often each dead letter is in one. */
async function startedOf({ pool }: Stage, source: string): Promise<unknown> {
  const { rows } = await pool.query(
    `select count(distinct r.id)::int as runs, count(*)::int as items, count(distinct i.dead_letter_id)::int as messages
     from redrive_catalog.replay_run r join redrive_catalog.replay_item i on i.run_id = r.id
     join redrive_catalog.source s on s.id = r.source_id
     where s.name = $1 and r.approved_at is not null and i.state <> 'skipped'`,
    [source],
  )
  return rows[0]
}
const ONCE = { runs: 1, items: 3, messages: 3 }

/** Number of plans and runs of a source. */
async function plansOf({ pool }: Stage, source: string): Promise<number> {
  const found = await pool.query(
    `select 1 from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id
     where s.name = $1`,
    [source],
  )
  return found.rowCount ?? 0
}

/** Requests wait until `open` is called. */
async function gate(page: Page, path: string) {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  let waiting = 0
  await page.route(path, async (route) => {
    waiting += 1
    await opened
    await route.continue()
  })
  return { open, waiting: () => waiting }
}

test('a restart of the server is reported, and keeps a half-filled wizard', async () => {
  const { page, close } = await openTab(browser)
  const id = await fillPlan(page, alone, 'restarted')
  await alone.stop()
  await page.getByText(/^No connection to the server for/).waitFor()
  await expectFields(page)
  await update(page).click()
  await page.locator('main').getByRole('alert').waitFor()
  await expectFields(page)
  await alone.start()
  await page.getByText(/^No connection to the server for/).waitFor({ state: 'detached' })
  await expectFields(page)
  await expectUpdated(page, alone, id)
  await close()
})

test('an ended session is reported, and the wizard continues after a new sign-in', async () => {
  const { page, id: session, close } = await openAs(browser, shared, 'chen')
  const id = await fillPlan(page, shared, 'expired')
  await shared.pool.query('delete from redrive_server.session where id = $1', [session])
  await page.getByText('Your session ended.').waitFor()
  await update(page).click()
  await page.locator('main').getByRole('alert').waitFor()
  await expectFields(page)
  expect(await plansOf(shared, 'expired')).toBe(1)
  await giveCookie(page, shared, await signIn(shared, 'chen'))
  await page.getByText('Your session ended.').waitFor({ state: 'detached' })
  await expectFields(page)
  // The new session has another CSRF token.
  await expectUpdated(page, shared, id)
  await close()
})

test('a revoked right is reported, its actions vanish, and typed text is kept', async () => {
  const { page, close } = await openAs(browser, shared, 'orla', { groups: ['on-call'] })
  const id = await fillPlan(page, shared, 'revoked')
  const setGroups = (groups: readonly string[]) =>
    shared.pool.query('update redrive_server.person set groups = $2 where id = $1', [
      `${ISSUER}#orla`,
      groups,
    ])
  // A viewer of all sources sees the plan, and may not change it.
  await setGroups(['nobody'])
  await update(page).click()
  await page
    .getByText(/permission/i)
    .first()
    .waitFor()
  await expect.poll(() => update(page).count()).toBe(0)
  expect(await plansOf(shared, 'revoked')).toBe(1)
  await setGroups(['on-call'])
  await page.reload()
  await update(page).waitFor()
  await expectFields(page)
  await expectUpdated(page, shared, id)
  await close()
})

test('a dropped stream is reported while the page reads the run by polls, and is opened again', async () => {
  const { page, close } = await openTab(browser)
  await page.route('**/events', (route) => route.abort())
  const id = await openPlan(page, alone, 'dropped')
  await start(page).click()
  await pause(page).waitFor()
  const lost = page.getByText('Live progress is interrupted.')
  await lost.waitFor()
  await expectAccessible(page, 'dropped stream')
  await alone.catalog.replays.pause(id, { by: 'ben' })
  await page.getByText('Paused', { exact: true }).first().waitFor()
  await page.unroute('**/events')
  await lost.waitFor({ state: 'detached' })
  await close()
})

test('a slow network starts a run once, and shows that it is being started', async () => {
  const { page, close } = await openTab(browser)
  const id = await openPlan(page, alone, 'slow')
  const { open, waiting } = await gate(page, '**/approve')
  await start(page).click()
  await page.locator('[title="The run is being started."]').waitFor()
  await start(page).click({ force: true })
  await start(page).press('Enter')
  expect(await alone.catalog.replays.run(id)).toMatchObject({ state: 'planned' })
  expect(waiting()).toBe(1)
  open()
  await pause(page).waitFor()
  expect(await startedOf(alone, 'slow')).toEqual(ONCE)
  await close()
})

test('a reload during a slow plan makes one plan', async () => {
  const { page, close } = await openTab(browser)
  const group = await cause(alone, 'reloaded')
  const slow = await gate(page, '**/api/v1/replays')
  await page.goto(`${alone.url}/replays/new?group=${group}`)
  await page.getByText('Checking each message. Nothing is published.').waitFor()
  await expect.poll(slow.waiting).toBeGreaterThan(0)
  slow.open()
  // The response of the first request is not read.
  await page.reload()
  await page.getByRole('row', { name: /Ready 3/ }).waitFor()
  expect(await plansOf(alone, 'reloaded')).toBe(1)
  await close()
})

test('the key of a plan is kept until the address is that of the plan, so that no reload makes another', async () => {
  const { page, close } = await openTab(browser)
  const group = await cause(alone, 'kept-key')
  const forgottenAt: string[] = []
  await page.exposeFunction('noteForgotten', (path: string) => void forgottenAt.push(path))
  await page.addInitScript(`
    const remove = Storage.prototype.removeItem
    Storage.prototype.removeItem = function (name) {
      if (name.includes('wizard-key-')) noteForgotten(location.pathname)
      return remove.call(this, name)
    }`)
  await page.goto(`${alone.url}/replays/new?group=${group}`)
  await page.getByRole('row', { name: /Ready 3/ }).waitFor()
  await expect.poll(() => forgottenAt.length).toBeGreaterThan(0)
  expect(forgottenAt).not.toContainEqual(expect.stringContaining('/replays/new'))
  await close()
})

test('a reload while the server still makes a plan waits for this plan', async () => {
  const { page, close } = await openTab(browser)
  const group = await cause(alone, 'repeated')
  let requests = 0
  await page.route('**/api/v1/replays', async (route) => {
    if (route.request().method() !== 'POST' || ++requests > 2) return route.continue()
    const title = 'Request in progress'
    const problem = { type: 'about:blank', title, status: 409, code: 'in_progress' }
    await route.fulfill({
      ...{ status: 409, contentType: 'application/problem+json' },
      body: JSON.stringify({ ...problem, detail: 'Retry in a second.', requestId: 'r1' }),
    })
  })
  await page.goto(`${alone.url}/replays/new?group=${group}`)
  await page.getByRole('row', { name: /Ready 3/ }).waitFor()
  expect([requests, await plansOf(alone, 'repeated')]).toEqual([3, 1])
  await close()
})

test('two tabs start a plan once, and the second one shows the run', async () => {
  const { page, close } = await openTab(browser)
  const id = await fillPlan(page, alone, 'two-tabs')
  await rate(page).fill('50')
  await note(page).fill('')
  const other = await page.context().newPage()
  // The second tab does not see the start of the first one.
  await other.route('**/events', (route) => route.abort())
  await other.goto(page.url())
  await start(other).waitFor()
  const reads = await gate(other, `**/api/v1/replays/${id}`)
  await start(page).click()
  await pause(page).waitFor()
  await start(other).click()
  reads.open()
  await pause(other).waitFor()
  expect(await startedOf(alone, 'two-tabs')).toEqual(ONCE)
  await close()
})

test('text that is typed in one tab is kept when another tab replaces the plan', async () => {
  const { page, close } = await openTab(browser)
  const id = await fillPlan(page, alone, 'replaced')
  const other = await page.context().newPage()
  await other.goto(page.url())
  await rate(other).fill('9')
  await update(other).click()
  await other.waitForURL((url) => !url.pathname.endsWith(id))
  await page.getByText('This plan was replaced.').waitFor()
  await page.getByRole('link', { name: 'Show the new plan' }).click()
  await page.waitForURL((url) => !url.pathname.endsWith(id))
  await rate(page).waitFor()
  await expectFields(page)
  await expectUpdated(page, alone, idOf(other))
  await close()
})

test('double clicks and repeated keys start a run once', async () => {
  const { page, close } = await openTab(browser)
  await openPlan(page, alone, 'clicked')
  // Three clicks before the page is drawn again.
  await page.evaluate(`(() => {
    const button = [...document.querySelectorAll('button')].find((one) =>
      one.textContent.startsWith('Start replay of'))
    for (let clicks = 0; clicks < 3; clicks += 1) button.click()
  })()`)
  await pause(page).waitFor()
  expect(await startedOf(alone, 'clicked')).toEqual(ONCE)
  await close()
})

test('back, forward and a reload after a start never replay again', async () => {
  const { page, close } = await openTab(browser)
  await page.goto(`${alone.url}/groups`)
  const group = await cause(alone, 'history')
  await page.goto(`${alone.url}/groups/${group}`)
  await page.getByRole('heading', { level: 1, name: /history/ }).waitFor()
  await page.keyboard.press('r')
  await start(page).click()
  await pause(page).waitFor()
  const plans = await plansOf(alone, 'history')
  await page.goBack()
  await page.waitForURL(`${alone.url}/groups/${group}`)
  await page.goForward()
  await pause(page).waitFor()
  await page.reload()
  await pause(page).waitFor()
  await page.goBack()
  await page.goBack()
  await page.waitForURL(`${alone.url}/groups`)
  await page.goForward()
  await page.goForward()
  await pause(page).waitFor()
  expect(await plansOf(alone, 'history')).toBe(plans)
  expect(await startedOf(alone, 'history')).toEqual(ONCE)
  await close()
})
