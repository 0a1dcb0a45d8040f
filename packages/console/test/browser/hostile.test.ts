import { randomUUID } from 'node:crypto'
import { createClient } from '@redrive/api'
import { encodeHeaders, FIRST_CYCLE } from '@redrive/core'
import { deadLetterQueue, MemoryBroker, memorySource, send } from '@redrive/memory'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectNoSidewaysScroll, launch, NARROW, openTab, WIDE } from './browser.ts'
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
  stage = await openStage('redrive_console_hostile')
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

/** Opens a page, waits for the text and expects that it is only text. */
async function open(page: Page, path: string, text: string): Promise<void> {
  await page.goto(stage.url + path)
  await page.getByText(text).first().waitFor()
  const found = await page.evaluate(`({
    hacked: window.hacked,
    elements: document.querySelectorAll('main :is(script, img, iframe, object, embed)').length,
    handlers: [...document.querySelectorAll('main *')].flatMap((one) =>
      one.getAttributeNames().filter((name) => name.startsWith('on'))).length,
    addresses: [...document.querySelectorAll('main [href]')].filter((one) =>
      one.getAttribute('href').startsWith('javascript:')).length,
    // An override that is not inside an isolated element changes the order of the words around it.
    overrides: document.querySelector('main').innerText.match(/[\\u202A-\\u202E\\u2066-\\u2069]/g)?.length,
  })`)
  const none = { hacked: undefined, elements: 0, handlers: 0, addresses: 0, overrides: undefined }
  expect({ path, found }).toEqual({ path, found: none })
  await expectNoSidewaysScroll(page, path)
}

const WIDTHS = [
  ['1440 px', WIDE],
  ['390 px', NARROW],
] as const

test.for(WIDTHS)('lists show hostile text as text: %s', async ([, viewport]) => {
  const { page, messages, close } = await openTab(browser, { viewport })
  await open(page, '/', '<script>window.hacked=1</script>')
  await open(page, '/groups', '<script>window.hacked=1</script>')
  await open(page, '/groups?by=source', '<script>window.hacked=1</script>')
  await open(page, '/messages', '<script>window.hacked=1</script>')
  await open(page, '/replays', '<script>window.hacked=1</script>')
  await open(page, '/approvals', 'Awaiting approval')
  await open(page, '/sources', '<script>window.hacked=1</script>')
  await open(page, `/sources/set-aside?entry=${aside}`, 'Bytes')
  await open(page, '/audit', 'development')
  await open(page, '/settings/masks', 'Masks')
  await open(page, '/settings/fingerprints', 'Try a rule')
  await page.keyboard.press('Control+k')
  await page
    .getByRole('option', { name: /window\.hacked/ })
    .first()
    .waitFor()
  expect(await page.evaluate('window.hacked')).toBeUndefined()
  expect(messages).toEqual([])
  await close()
})

test.for(
  CORPUS.flatMap(({ name }, at) =>
    WIDTHS.map(([label, viewport]) => [name, label, at, viewport] as const),
  ),
)('pages of one message show it as text: %s, %s', async ([, , at, viewport]) => {
  const { page, messages, close } = await openTab(browser, { viewport })
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
  for (const view of ['pretty', 'raw', 'hex']) {
    await page.goto(`${stage.url}/messages/${one.id}?body=${view}`)
    await page.getByRole('button', { name: 'Reveal…' }).click()
    await page.getByRole('textbox', { name: 'Reason' }).fill('Ticket 4411')
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Reveal/ })
      .click()
    await page.getByText('The whole body is shown.').waitFor()
    await expectNoSidewaysScroll(page, `revealed ${view}`)
  }
  expect(await page.evaluate('window.hacked')).toBeUndefined()
  expect(messages).toEqual([])
  await close()
})
