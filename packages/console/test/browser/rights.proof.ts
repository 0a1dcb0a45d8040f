import { type Client, createClient, type Operation } from '@redrive/api'
import { ACTIONS, type Action, ROLES, type Role } from '@redrive/api/enums'
import { isMutation, ROUTES } from '@redrive/api/internal'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launch, openTab } from './browser.ts'
import { ISSUER, OIDC, openAs, signIn } from './session.ts'
import { openStage, seed, setOneAside, type Stage } from './stage.ts'

const SOURCES = ['alpha', 'beta'] as const
type Source = (typeof SOURCES)[number]
/** Fingerprint rules, so that there is something to apply. */
const CONFIG = {
  fingerprints: [{ name: 'Locks', match: { text: 'lock timeout' }, group: 'lock timeouts' }],
  limits: { requestsPerMinute: 100_000 },
}

let browser: Browser
/** Every caller is an administrator or has one of their tokens. */
let open: Stage
/** Users sign in here, with roles that differ by source. */
let guarded: Stage
const data = new Map<string, Ids>()

/** Where the actions of one source are. */
interface Ids {
  readonly source: Source
  readonly group: string
  readonly waiting: string
  readonly discarded: string
  readonly unknown: string
  readonly planned: string
  readonly running: string
  readonly paused: string
  readonly aside: string
  readonly requested: string
  readonly asideDiscarded: string
}

interface Control {
  /** Role and name of the control. */
  readonly name: RegExp
  /** The operations that it calls. */
  readonly calls: readonly Operation[]
  /** Permissions that these operations need for this use only, such as `edit` for a plan that changes messages. */
  readonly also?: readonly Action[]
}

interface Screen {
  readonly path: (ids: Ids) => string
  /** Text that the page shows when it is complete. */
  readonly ready: string | RegExp
  /** Rows to select before the actions are shown. */
  readonly select?: RegExp
  readonly controls: readonly Control[]
}

// biome-ignore format: one row per control
const SCREENS: readonly Screen[] = [
  { path: ({ group }) => `/groups/${group}`, ready: 'First failure', controls: [
    { name: /^link (Repair|Replay) \d/, calls: ['planReplay'] },
    { name: /^button Discard…/, calls: ['selectDeadLetters', 'discard'] },
    { name: /^textbox Comment/, calls: ['commentGroup'] },
  ] },
  { path: ({ source }) => `/groups?q=source%3A${source}+class%3Aschema`, ready: 'ECONTRACT', select: /^Select expected/, controls: [
    { name: /^button Replay \d/, calls: ['planReplay'] },
    { name: /^button Assign to me/, calls: ['changeGroup'] },
    { name: /^button Mute…/, calls: ['changeGroup'] },
    { name: /^button Resolve…/, calls: ['changeGroup'] },
    { name: /^button Discard \d/, calls: ['selectDeadLetters', 'discard'] },
  ] },
  { path: ({ source }) => `/messages?q=source%3A${source}+class%3Aschema`, ready: 'order-0', select: /^Select order-0/, controls: [
    { name: /^link Replay all that match…/, calls: ['planReplay'] },
    { name: /^button Replay \d/, calls: ['planReplay'] },
    { name: /^button Discard \d/, calls: ['discard'] },
  ] },
  { path: ({ waiting }) => `/messages/${waiting}`, ready: 'Cycle 1', controls: [
    { name: /^button Replay…/, calls: ['planReplay'] },
    { name: /^button Discard…/, calls: ['discard'] },
    { name: /^button Reveal…/, calls: ['getPayload'] },
    { name: /^link Edit and replay…/, calls: ['getPayload', 'planReplay'], also: ['edit'] },
    { name: /^textbox Comment/, calls: ['commentDeadLetter'] },
  ] },
  { path: ({ discarded }) => `/messages/${discarded}`, ready: 'Cycle 1', controls: [
    { name: /^button Restore…/, calls: ['restore'] },
  ] },
  { path: ({ unknown }) => `/messages/${unknown}`, ready: 'Cycle 1', controls: [
    { name: /^button Took effect…/, calls: ['setOutcomes'] },
    { name: /^button Reopen…/, calls: ['setOutcomes'] },
  ] },
  { path: ({ planned }) => `/replays/${planned}`, ready: 'Ready', controls: [
    { name: /^button Withdraw plan…/, calls: ['cancelReplay'] },
    { name: /^button Update plan/, calls: ['planReplay'] },
    { name: /^button Add a patch…/, calls: ['planReplay'], also: ['edit', 'view_payload'] },
    { name: /^button Approve \d/, calls: ['approveReplay'] },
  ] },
  { path: ({ planned }) => `/approvals?run=${planned}`, ready: 'Plan hash', controls: [
    { name: /^button Approve \d/, calls: ['approveReplay'] },
  ] },
  { path: ({ running }) => `/replays/${running}`, ready: 'Running', controls: [
    { name: /^button Pause/, calls: ['pauseReplay'] },
    { name: /^button Cancel…/, calls: ['cancelReplay'] },
  ] },
  { path: ({ paused }) => `/replays/${paused}`, ready: 'Paused', controls: [
    { name: /^button Resume…/, calls: ['resumeReplay'] },
    { name: /^button Cancel…/, calls: ['cancelReplay'] },
  ] },
  { path: ({ aside }) => `/sources/set-aside?entry=${aside}`, ready: 'SHA-256', controls: [
    { name: /^button Request replay…/, calls: ['replaySetAside'] },
    { name: /^button Discard…/, calls: ['discardSetAside'] },
    { name: /^button Show bytes…/, calls: ['getSetAsidePayload'] },
  ] },
  { path: ({ requested }) => `/sources/set-aside?entry=${requested}`, ready: 'SHA-256', controls: [
    { name: /^button Approve replay…/, calls: ['approveSetAside'] },
    { name: /^button Withdraw request…/, calls: ['reopenSetAside'] },
  ] },
  { path: ({ asideDiscarded }) => `/sources/set-aside?entry=${asideDiscarded}`, ready: 'SHA-256', controls: [
    { name: /^button Reopen…/, calls: ['reopenSetAside'] },
  ] },
]

/** Operations that no control of one source calls, with the place that has them. */
const ELSEWHERE: Readonly<Partial<Record<Operation, string>>> = {
  applyFingerprints: 'tested below, because one button concerns all sources',
  previewFingerprints: 'a dry run of the same page',
  ...{ createToken: 'settings.test.ts', revokeToken: 'settings.test.ts' },
  revokeSession: 'settings.test.ts',
  ...{ setSchema: 'command line', setAutoReplay: 'command line' },
  acknowledgeRestore: 'command line',
  ...{ mergeGroups: 'command line', unmergeGroup: 'command line', splitGroup: 'command line' },
}

const GRANTS: Readonly<Record<string, Readonly<Record<Source, Role>>>> = {
  val: { alpha: 'viewer', beta: 'admin' },
  ola: { alpha: 'operator', beta: 'approver' },
  abe: { alpha: 'approver', beta: 'operator' },
  amy: { alpha: 'admin', beta: 'viewer' },
}

const bindings = Object.entries(GRANTS).flatMap(([person, roles]) =>
  SOURCES.map((source) => ({ people: [person], roles: [roles[source]], sources: [source] })),
)

beforeAll(async () => {
  browser = await launch()
  open = await openStage('redrive_console_rights_open', { config: CONFIG })
  const access = [...bindings, { people: ['boss'], roles: ['approver'], sources: ['*'] }]
  guarded = await openStage('redrive_console_rights', {
    ...{ auth: { oidc: OIDC }, config: { ...CONFIG, access } },
  })
  await signIn(guarded, 'boss')
  data.set('open alpha', await prepare(open, 'alpha', 'development'))
  for (const source of SOURCES)
    data.set(`guarded ${source}`, await prepare(guarded, source, `${ISSUER}#boss`))
})
afterAll(async () => {
  await browser?.close()
  await open?.end()
  await guarded?.end()
})

/** Creates everything that an action concerns. The approver is a user, so that a paused run can be resumed. */
async function prepare({ catalog, pool }: Stage, source: Source, approver: string): Promise<Ids> {
  const cause = (message: string, failure: 'schema' | 'transient') =>
    seed(catalog, {
      ...{ source, class: failure, code: 'ECONTRACT', message: `${message} of ${source}` },
      times: [Date.now() - 600_000],
      body: { id: 1 },
    })
  const firstOf = async (group: string) => {
    const { deadLetters } = await catalog.deadLetters({ groups: [group], after: 0 })
    return deadLetters[0]?.id ?? ''
  }
  const runOf = async (message: string) => {
    const group = await cause(message, 'transient')
    const { id, hash } = await catalog.replays.plan({ selection: { group }, by: 'redrive' })
    await catalog.replays.approve(id, { by: approver, hash })
    return id
  }
  const group = await cause('expected string', 'schema')
  const discarded = await firstOf(await cause('discarded', 'transient'))
  await catalog.discard({ ids: [discarded] }, { by: 'ben' })
  const unknown = await firstOf(await cause('unknown', 'transient'))
  await pool.query(`update redrive_catalog.dead_letter set status = 'unknown' where id = $1`, [
    unknown,
  ])
  const paused = await runOf('paused')
  await catalog.replays.pause(paused, { by: 'ben' })
  const requested = await setOneAside(catalog, source)
  await catalog.setAside.requestReplay([requested], { by: 'ben' })
  const asideDiscarded = await setOneAside(catalog, source)
  await catalog.setAside.discard([asideDiscarded], { by: 'ben' })
  const waiting = await firstOf(group)
  const planned = await catalog.replays.plan({ selection: { ids: [waiting] }, by: 'ben' })
  return {
    ...{ source, group, waiting, discarded, unknown, paused, requested, asideDiscarded },
    ...{ planned: planned.id, running: await runOf('running') },
    aside: await setOneAside(catalog, source),
  }
}

/** Opens a screen without loading the page again. */
const visit = (page: Page, path: string) => page.evaluate(`history.pushState({}, '', '${path}')`)

/** Role and name of each control that the user can use. A control that names a missing permission is not offered. */
const OFFERED = `[...document.querySelectorAll('main :is(button, a, textarea)')]
  .filter((one) => one.checkVisibility() && !(one.title ?? '').startsWith('Permission'))
  .map((one) => one.matches('textarea')
    ? 'textbox ' + one.ariaLabel
    : (one.matches('a') ? 'link ' : 'button ') + one.textContent.trim())`

const offered = async (page: Page) => (await page.evaluate(OFFERED)) as readonly string[]

const needsOf = ({ calls, also = [] }: Control): readonly Action[] => [
  ...calls.map((name) => ROUTES[name].needs).filter((needs) => needs !== 'signed_in'),
  ...also,
]

/** Expects that the screens of a source offer exactly what the permissions allow. */
async function expectRights(page: Page, ids: Ids, actions: readonly Action[]): Promise<void> {
  for (const { path, ready, select, controls } of SCREENS) {
    await visit(page, path(ids))
    await page.locator('main').getByText(ready).filter({ visible: true }).first().waitFor()
    if (select !== undefined) {
      await page.getByRole('checkbox', { name: select }).check()
      await page.getByText(/ selected$/).waitFor()
    }
    const wanted = controls
      .filter((control) => needsOf(control).every((needs) => actions.includes(needs)))
      .map(({ name }) => String(name))
    await expect
      .poll(
        async () => {
          const found = await offered(page)
          return controls
            .filter(({ name }) => found.some((one) => name.test(one)))
            .map(({ name }) => String(name))
        },
        { message: `${path(ids)} with ${actions.join(', ')}`, timeout: 5_000 },
      )
      .toEqual(wanted)
  }
}

const idsOf = (name: string): Ids => {
  const found = data.get(name)
  if (found === undefined) throw new Error(`No data: ${name}.`)
  return found
}

test('the screens have a control for each operation that changes data', () => {
  const called = new Set(SCREENS.flatMap(({ controls }) => controls.flatMap(({ calls }) => calls)))
  const names = Object.keys(ROUTES) as Operation[]
  const missing = names.filter(
    (name) => isMutation(ROUTES[name]) && !called.has(name) && ELSEWHERE[name] === undefined,
  )
  expect(missing).toEqual([])
})

test.for(ACTIONS)('view and %s alone show exactly what the API accepts', async (action) => {
  const admin: Client = createClient({ url: open.url })
  const actions: Action[] = action === 'view' ? ['view'] : ['view', action]
  const body = { name: action, actions, sources: ['alpha'], days: 1 }
  const { secret } = await admin.call('createToken', { body })
  const { page, messages, close } = await openTab(browser, {
    extraHTTPHeaders: { authorization: `Bearer ${secret}` },
  })
  await page.goto(open.url)
  await page.getByRole('link', { name: 'Overview' }).waitFor()
  expect(await page.getByRole('link', { name: 'Audit' }).count()).toBe(
    action === ROUTES.listAudit.needs ? 1 : 0,
  )
  await expectRights(page, idsOf('open alpha'), actions)
  await visit(page, '/settings/fingerprints')
  await page.getByText('Locks').first().waitFor()
  const apply = (await offered(page)).filter((name) => name.startsWith('button Apply'))
  expect(apply.length).toBe(action === ROUTES.applyFingerprints.needs ? 1 : 0)
  expect(messages).toEqual([])
  await close()
})

test.for(Object.entries(GRANTS))(
  'roles that differ by source show exactly what the API accepts: %s %o',
  async ([person, roles]) => {
    const { page, messages, close } = await openAs(browser, guarded, person)
    await page.goto(guarded.url)
    await page.getByRole('link', { name: 'Overview' }).waitFor()
    for (const source of SOURCES)
      await expectRights(page, idsOf(`guarded ${source}`), ROLES[roles[source]])
    expect(messages).toEqual([])
    await close()
  },
)
