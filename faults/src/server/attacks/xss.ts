import type { Operation } from '@redrive/api'
import { type Route, ROUTES } from '@redrive/api/internal'
import type { BrowserContext } from 'playwright-core'
import type { Scenario } from '../../harness/scenario.ts'
import { type Person, must } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import type { Run } from './runs.ts'
import { hostileText, scripts } from './strings.ts'

/** Text in messages, comments and names stays text for every viewer. */
export const XSS: Scenario = attack(
  'xss',
  'scripts in every field that another user controls, and a browser that opens every page with them',
  async (scene) => {
    const { canary, openId } = scene.target
    openId.accounts.set('root', { name: hostileText(canary.url), groups: scripts(canary.url) })
    const { asking, visitor } = await scene.target.visitor('root')
    const addresses = await filled(scene, asking)
    for (const [name, path] of addresses) await answered(scene, asking, name, path)
    const context = await (await scene.target.browser()).newContext()
    const cookies = [...visitor.ours].map(([name, value]) => ({ name, value }))
    const { url } = scene.target.server
    await context.addCookies(cookies.map((one) => ({ ...one, url, httpOnly: true })))
    // Six at a time, as tabs of one window.
    const lanes = Array.from({ length: TABS }, async (_, lane) => {
      const mine = addresses.filter((__, at) => at % TABS === lane)
      for (const [name, path] of mine) await opened(scene, context, name, path)
    })
    await Promise.all(lanes)
    const { requests } = scene.target.canary
    scene.tries.note(`the browser is made to request ${requests.join(', ')}`, requests.length > 0)
    await context.close()
  },
)

/** Puts scripts into every field and returns every address that returns them. */
async function filled(
  { target }: Scene,
  root: Person,
): Promise<readonly (readonly [string, string])[]> {
  const { canary, pool, queues, hostileSource: source } = target
  const text = hostileText(canary.url)
  const short = scripts(canary.url)[0] ?? ''
  const headers = Object.fromEntries(scripts(canary.url).map((one) => [one.slice(0, 120), one]))
  const [id = ''] = await queues.kill(pool, source, [
    {
      id: `${short}${Date.now()}`,
      key: short,
      type: short,
      code: short,
      message: scripts(canary.url).slice(0, 4).join(' '),
      contentType: 'text/html',
      body: JSON.stringify({ order: text, [short]: text }),
      headers: { ...headers, 'content-disposition': 'inline; filename=x.html' },
    },
  ])
  const { group } = must<{ group: string }>(await root('GET', `/api/v1/dead-letters/${id}`))
  for (const path of [`groups/${group}`, `dead-letters/${id}`]) {
    must(await root('POST', `/api/v1/${path}/comments`, { body: { text } }))
  }
  const token = { name: short, days: 1, actions: ['view'], sources: [short] }
  must(await root('POST', '/api/v1/tokens', { body: token }))
  const planResponse = await root('POST', '/api/v1/replays', {
    body: { selection: { ids: [id] }, note: text },
  })
  const run = must<Run>(planResponse)
  const etag = (await root('GET', `/api/v1/groups/${group}`)).headers.get('etag') ?? ''
  const owner = { body: { owner: short }, headers: { 'if-match': etag } }
  must(await root('PATCH', `/api/v1/groups/${group}`, owner))
  return addresses({ group, run: run.id, id, source }, short)
}

interface KnownIds {
  readonly group: string
  readonly run: string
  readonly id: string
  readonly source: string
}

const NEEDED: { readonly [K in Operation]?: string } = {
  listDeadLetters: 'filter=after:0',
  exportDeadLetters: 'filter=after:0',
  trend: `per=hour&after=0&before=${Date.now()}`,
}

/**
 * Builds addresses from the table of routes, so that a new one is checked as well. It adds those
 * outside the table.
 */
function addresses(known: KnownIds, script: string): readonly (readonly [string, string])[] {
  const written = encodeURIComponent(script)
  const rows = Object.entries(ROUTES) as [Operation, Route][]
  const reading = rows
    .filter(([, { method }]) => method === 'GET')
    .map(([name, { path }]) => [name, pathOf(path, known) + queryOf(name)] as const)
  return [
    ...reading,
    ['a filter that does not exist', `/api/v1/groups?${written}=${written}`],
    ['a value that is not allowed', `/api/v1/groups?order=${written}`],
    ['an invalid pointer', `/api/v1/dead-letters?filter=after:0%20json:${written}%3D1`],
    ['an invalid id', `/api/v1/groups/${written}`],
    ['an unknown address', `/${written}`],
    ['a wrong method', `/api/v1/replays/${known.run}/approve`],
    ['the reference', `/api/reference/?${written}#${written}`],
    ['the contract', '/api/v1/openapi.json'],
    ['the callback of a login', `/auth/callback?error=${written}&error_description=${written}`],
    ['health', `/readyz?verbose&${written}`],
    ['metrics', '/metrics'],
  ]
}

function pathOf(path: string, { group, run, id }: KnownIds): string {
  const [, , , kind = ''] = path.split('/')
  const ids: Readonly<Record<string, string>> = { groups: group, replays: run }
  return path.replace('{id}', ids[kind] ?? id)
}

const queryOf = (name: Operation) => (NEEDED[name] === undefined ? '' : `?${NEEDED[name]}`)

/** Content types that a browser does not run. */
const TYPES = /^(application\/(problem\+)?json|application\/jsonl|text\/event-stream|text\/plain)\b/

async function answered(
  { tries }: Scene,
  asking: Person,
  name: string,
  path: string,
): Promise<void> {
  const headers = await headersOf(asking, path)
  const type = headers.get('content-type') ?? ''
  const isPage = name === 'the reference'
  tries.note(`${name} has the content type ${type}`, !isPage && !TYPES.test(type))
  tries.note(
    `${name} may be interpreted as another type`,
    headers.get('x-content-type-options') !== 'nosniff',
  )
  const policy = headers.get('content-security-policy') ?? ''
  const isStrict = /default-src 'none'/.test(policy) && !/script-src[^;]*unsafe/.test(policy)
  tries.note(`${name} has the policy '${policy}'`, !isStrict)
}

/** Returns the headers; of a stream without an end, only its start is read. */
const headersOf = async (asking: Person, path: string) =>
  path.endsWith('/events') ? asking.head(path) : (await asking('GET', path)).headers

async function opened(
  { target, tries }: Scene,
  context: BrowserContext,
  name: string,
  path: string,
): Promise<void> {
  const page = await context.newPage()
  let dialogs = 0
  page.on('dialog', (dialog) => {
    dialogs += 1
    void dialog.dismiss()
  })
  // A download is not shown.
  await page.goto(`${target.server.url}${path}`, { waitUntil: 'commit' }).catch((error: Error) => {
    if (!/download|ERR_ABORTED/i.test(error.message)) throw error
  })
  // A stream never finishes loading. A script in it has run by then.
  await page.waitForLoadState('load', { timeout: LOAD_MS }).catch(() => undefined)
  // A page that was redirected cannot be evaluated. A redirect means that an attack succeeded.
  const isRun = await page.evaluate<boolean>('self.canary !== undefined').catch(() => true)
  tries.note(`${name} runs a script`, isRun)
  tries.note(`${name} opens a dialog`, dialogs > 0)
  await page.close()
}

const LOAD_MS = 1_000
const TABS = 6
