import { randomUUID } from 'node:crypto'
import { createClient } from '@redrive/api'
import { encodeHeaders, FIRST_CYCLE } from '@redrive/core'
import { deadLetterQueue, MemoryBroker, memorySource, send } from '@redrive/memory'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launch, NARROW, openTab, WIDE } from './browser.ts'
import { openStage, type Stage } from './stage.ts'

let browser: Browser
let stage: Stage

/** Each sets `window.hacked` if a page treats it as markup or as code. */
const SCRIPT = [
  '<script>window.hacked=1</script>',
  '<img src=x onerror="window.hacked=1">',
  '<svg onload="window.hacked=1">',
  '"><iframe srcdoc="<script>parent.hacked=1</script>">',
  'javascript:window.hacked=1',
  '${window.hacked=1}{{constructor.constructor("window.hacked=1")()}}',
].join(' ')
const RTL =
  '\u202Egnp.exe\u202C \u2066\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u200f'
const ZALGO = `Z${'\u0300\u0310\u0321\u0335\u0489'.repeat(40)}algo`
const LINE = 'x'.repeat(1_000_000)

interface Entry {
  readonly name: string
  /** Text for the names and messages of the peer. */
  readonly text: string
  readonly body: unknown
}

const CORPUS: readonly Entry[] = [
  { name: 'script', text: SCRIPT, body: { [SCRIPT]: SCRIPT } },
  { name: 'rtl', text: RTL, body: { [RTL]: RTL } },
  { name: 'zalgo', text: ZALGO, body: { [ZALGO]: ZALGO } },
  { name: 'line', text: LINE.slice(0, 5_000), body: { line: LINE } },
  {
    name: 'keys',
    text: '{"a":'.repeat(500),
    body: Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`key ${at}`, at])),
  },
  {
    name: 'binary',
    text: '\u0000\u0007\u001b[2J\u009b31m\ud800\u2028',
    body: Uint8Array.from({ length: 4_096 }, (_, at) => at % 256),
  },
]

/** Names of sources are names of queues and topics. An administrator writes them into the config, without controls. */
const sourceOf = ({ name, text }: Entry) =>
  `${name} ${text.slice(0, 120).replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}]/gu, '')}`.trim()

interface Seeded {
  readonly entry: Entry
  readonly source: string
  readonly id: string
  readonly group: string
  readonly run: string
}

const seeded: Seeded[] = []
let aside = ''

/** Ingests one dead letter in which every field of a peer has the text. */
async function ingest(entry: Entry): Promise<Seeded> {
  const { text, body } = entry
  const source = sourceOf(entry)
  const broker = new MemoryBroker()
  const id = randomUUID()
  const at = Date.now()
  const signature = `1-${id.replaceAll('-', '').slice(0, 16)}`
  const short = text.slice(0, 200)
  const failure = { class: 'schema' as const, signature, code: short, type: short, message: text }
  const cycle = {
    ...FIRST_CYCLE,
    attempts: 2,
    firstFailedAt: at - 1_000,
    history: [{ number: 1, at, waitedMs: 0, ...failure, counted: true }],
  }
  const fields = { id, key: text.slice(0, 500), source, replayId: undefined, cycle }
  const stack = `Error: ${text}\n    at ${text} (${text.slice(0, 100)}.ts:1:1)`
  const { headers } = encodeHeaders({ ...fields, reason: 'not_retryable', handler: short, stack })
  const peer = { 'x-note': text.slice(0, 5_000), [`x-${entry.name}`]: short }
  send(broker, deadLetterQueue(source), body, {
    ...{ id, type: short, contentType: short },
    headers: { ...peer, ...headers },
  })
  const queue = memorySource({ broker, queue: source })
  await stage.catalog.ingest(queue, {})
  await queue.close()
  const { deadLetters } = await stage.catalog.deadLetters({ sources: [source], after: 0 })
  const [found] = deadLetters
  if (found === undefined) throw new Error(`The corpus "${entry.name}" was not ingested.`)
  const group = found.group
  const client = createClient({ url: stage.url })
  const comment = { text: text.replaceAll('\u0000', '').slice(0, 5_000) }
  await client.call('commentGroup', { params: { id: group }, body: comment })
  await client.call('commentDeadLetter', { params: { id: found.id }, body: comment })
  const note = comment.text.slice(0, 1_000)
  const run = await stage.catalog.replays.plan({ selection: { group }, by: 'ben', note })
  return { entry, source, id: found.id, group, run: run.id }
}

beforeAll(async () => {
  browser = await launch()
  // Many pages in a short time: more requests than one user makes.
  const config = { limits: { requestsPerMinute: 100_000 } }
  stage = await openStage('redrive_console_hostile', { config })
  for (const entry of CORPUS) seeded.push(await ingest(entry))
  const broker = new MemoryBroker()
  send(
    broker,
    deadLetterQueue('aside'),
    { [SCRIPT]: RTL },
    {
      ...{ type: SCRIPT, headers: { 'x-note': SCRIPT, 'x-rtl': RTL, 'x-zalgo': ZALGO } },
    },
  )
  const queue = memorySource({ broker, queue: 'aside' })
  await stage.catalog.ingest(queue, { maxPayloadBytes: 1 })
  await queue.close()
  const { messages } = await stage.catalog.setAside.list({ sources: ['aside'], limit: 1 })
  aside = messages[0]?.id ?? ''
})
afterAll(async () => {
  await browser?.close()
  await stage?.end()
})

/** The reactions of a page to text of a peer. It must only show the text. Each entry of the lists names an element. */
const PROBE = `(() => {
  const main = document.querySelector('main')
  const all = [...main.querySelectorAll('*')]
  const nameOf = (one) => one.tagName.toLowerCase() + '.' + one.className + ': ' + one.textContent.slice(0, 60)
  const scrolls = (one) => one !== null && one !== main &&
    (getComputedStyle(one).overflowX !== 'visible' || scrolls(one.parentElement))
  const isWide = (one) => one.getBoundingClientRect().right > document.documentElement.clientWidth
  const page = document.documentElement
  return {
    hacked: window.hacked,
    elements: all.filter((one) => one.matches('script, img, iframe, object, embed')).map(nameOf),
    handlers: all.filter((one) =>
      one.getAttributeNames().some((name) => name.startsWith('on'))).map(nameOf),
    addresses: all.filter((one) => /^(javascript|data):/.test(one.getAttribute('href') ?? '')).map(nameOf),
    // A control or an override in the text could reorder or hide the words around it.
    controls: all.filter((one) => !one.matches('textarea') && [...one.childNodes].some((node) =>
      node.nodeType === 3 && /[\\u0000-\\u0008\\u000b-\\u001f\\u200f\\u202a-\\u202e\\u2066-\\u2069]/.test(node.data))).map(nameOf),
    wide: page.scrollWidth <= page.clientWidth ? [] : [page.scrollWidth, ...all.filter((one) =>
      isWide(one) && !scrolls(one.parentElement) && ![...one.children].some(isWide)).map(nameOf)],
  }
})()`

const NOTHING = {
  ...{ hacked: undefined, elements: [], handlers: [], addresses: [], controls: [], wide: [] },
}

/** Expects that the page shows hostile text only as text, at both widths. A chart is drawn again after a change of the width. */
async function expectText(page: Page, what: string): Promise<void> {
  for (const viewport of [NARROW, WIDE]) {
    await page.setViewportSize(viewport)
    const message = `${what} at ${viewport.width} px`
    await expect.poll(() => page.evaluate(PROBE), { message, timeout: 5_000 }).toEqual(NOTHING)
  }
}

/** Opens a page, waits for the text and expects that it is only text. */
async function open(page: Page, path: string, text: string | RegExp): Promise<void> {
  await page.goto(stage.url + path)
  await page.getByText(text).filter({ visible: true }).first().waitFor()
  await expectText(page, path)
}

test('lists show hostile text as text', async () => {
  const { page, messages, close } = await openTab(browser)
  const script = '<script>window.hacked=1</script>'
  for (const [path, text] of [
    ['/', script],
    ['/groups', script],
    ['/groups?by=source', script],
    ['/messages', script],
    ['/replays', script],
    ['/approvals', 'Awaiting approval'],
    ['/sources', script],
    [`/sources/set-aside?entry=${aside}`, 'Bytes'],
    ['/audit', 'development'],
    ['/settings/masks', 'Masks'],
    ['/settings/fingerprints', 'Try a rule'],
  ] as const) {
    await open(page, path, text)
  }
  await page.keyboard.press('Control+k')
  const option = page
    .getByRole('dialog')
    .getByRole('option', { name: /window\.hacked/ })
    .first()
  await option.waitFor()
  await expectText(page, 'palette')
  expect(messages).toEqual([])
  await close()
})

test.for(CORPUS.map(({ name }, at) => [name, at] as const))(
  'pages of one message show it as text: %s',
  async ([, at]) => {
    const { page, messages, close } = await openTab(browser)
    const one = seeded[at]
    if (one === undefined) throw new Error('The corpus is not complete.')
    await open(page, `/messages/${one.id}`, 'Body')
    for (const tab of ['messages', 'why', 'replays']) {
      await open(page, `/groups/${one.group}?tab=${tab}`, 'Activity')
    }
    await open(page, `/replays/${one.run}`, 'Ready')
    await open(page, `/approvals?run=${one.run}`, 'Plan hash')
    await open(page, `/sources?source=${encodeURIComponent(one.source)}`, 'Server processes')
    // The whole body, in each view.
    await open(page, `/messages/${one.id}`, 'Body')
    await page.getByRole('button', { name: 'Reveal…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Ticket 4411')
    await dialog.getByRole('button', { name: /^Reveal/ }).click()
    await page.getByText('The whole body is shown.').waitFor()
    for (const view of ['Pretty', 'Raw', 'Hex']) {
      await page.getByRole('radio', { name: view }).click()
      await expectText(page, `revealed ${view}`)
    }
    await page.goto(`${stage.url}/messages/${one.id}/edit`)
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('Ticket 4411')
    await dialog.getByRole('button', { name: /^Reveal/ }).click()
    await page.locator('.cm-content').or(page.getByText('The body is not text.')).waitFor()
    await expectText(page, 'editor')
    expect(messages).toEqual([])
    await close()
  },
)
