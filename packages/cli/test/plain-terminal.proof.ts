import { readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { delimiter, dirname } from 'node:path'
import { createClient } from '@redrive/api'
import { freePort, services } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { QUEUE } from './terminal/incident.ts'
import { plain } from './terminal/plain.ts'
import { COUNT, DEAD, type PlainIncident, plainIncident } from './terminal/plain-consumer.ts'
import { project } from './terminal/project.ts'
import { type Terminals, terminals } from './terminal/tmux.ts'

const ends: (() => Promise<unknown>)[] = []
let broken: PlainIncident
let screens: Terminals
let url: string
beforeAll(async () => {
  await services('up', 'tmux')
  broken = await plainIncident(ends)
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const folder = project({
    database: { url: broken.database },
    listen: `127.0.0.1:${port}`,
    auth: { development: { name: 'ada' } },
    approval: 'anyone',
    sources: { orders: { rabbitmq: { url: broken.amqp, queue: QUEUE, deadLetterQueues: [DEAD] } } },
    shutdown: { readinessDelay: '0ms' },
  })
  // With retries, because ending programs may still write to the folder.
  ends.push(() => rm(folder, { recursive: true, maxRetries: 10, retryDelay: 200 }))
  screens = terminals(folder, {
    PATH: [`${folder}/node_modules/.bin`, dirname(process.execPath), process.env['PATH']].join(
      delimiter,
    ),
    HOME: folder,
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    REDRIVE_URL: url,
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
  })
  ends.push(() => screens.close())
}, 300_000)
afterAll(async () => {
  for (const end of ends.reverse()) await end()
})

test('shows a replay to a consumer that does not use Redrive', async () => {
  const screen = await screens.open('on-call', { NO_COLOR: '1' })
  const server = await screens.open('server', { NO_COLOR: '1' })
  await screen.type('redrive migrate --json > migrated.json')
  await server.begin('redrive serve', 'Serving api')
  await until('all dead letters are in the catalog', async () => (await openAt(url)) === COUNT)
  await broken.fix()
  const groups = await screen.type('redrive groups list')
  const group = /^([0-9a-f]{4}) /m.exec(groups)?.[1] ?? ''
  const plan = await screen.type(`redrive replay plan group:${group} --outcome-timeout 5s`)
  const run = /replay start ([0-9a-f-]{36})/.exec(plan)?.[1] ?? ''
  await screen.answer(`redrive replay start ${run} --wait`, 'to orders?', 'y')
  await screen.type(`redrive replay show ${run}`)
  await screen.type('redrive groups list --open')
  await server.interrupt()
  expect(broken.handled()).toBe(COUNT - 1)
  isGolden(
    `${await screen.text()}\n\nThe line of the progress, as it changed:\n${frames(screen.bytes())}\n`,
  )
}, 600_000)

async function openAt(server: string): Promise<number | undefined> {
  const { sources } = await createClient({ url: server }).call('listSources', {})
  return sources[0]?.open
}

// oxlint-disable-next-line no-control-regex
const FRAME = /\r(?<text>Sent [^\u001b]*)\u001b\[K/g

/** Returns the texts that the progress line had, without the texts that depend on the speed of the machine. */
function frames(bytes: string): string {
  const texts = [...bytes.matchAll(FRAME)].map(({ groups }) => groups?.['text'] ?? '')
  const kept = texts
    .filter((text) => /^Sent (?:10|200) of 200/.test(text) && !text.endsWith('/s.'))
    .map((text) => text.replace(/within \d+ (?:m?s)/, 'within 5 s'))
    // The returned message is in the catalog before or after the last publish.
    .map((text) => text.replace(/[01] returned\. Ends/, '1 returned. Ends'))
  return [...new Set(kept)].join('\n')
}

const GOLDEN = new URL('golden/plain-terminal.txt', import.meta.url)

/** Replaces the ages of a group, which depend on the speed of the machine. */
const withoutAges = (text: string): string =>
  text
    .replace(/SINCE +LAST/g, 'SINCE  LAST')
    .replace(
      /(?<=\d) +(?:now|\d+ (?:s|min)) +(?:now|\d+ (?:s|min))(?= {2}[▁▂▃▄▅▆▇█]{8})/g,
      '    9 s   9 s',
    )

/** Compares with the golden file. UPDATE_GOLDEN=1 rewrites it. */
function isGolden(shown: string): void {
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(GOLDEN, withoutAges(plain(shown)))
  expect(withoutAges(plain(shown))).toBe(readFileSync(GOLDEN, 'utf8'))
}
