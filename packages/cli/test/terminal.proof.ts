import { readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { delimiter, dirname } from 'node:path'
import { createClient } from '@redrive/api'
import { freePort, services, urlsOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXPECTED, type Incident, incident, QUEUE } from './terminal/incident.ts'
import { plain } from './terminal/plain.ts'
import { project } from './terminal/project.ts'
import { look, lookBack, replay, triage } from './terminal/story.ts'
import { type Terminal, type Terminals, terminals } from './terminal/tmux.ts'

const ends: (() => Promise<unknown>)[] = []
let broken: Incident
let screens: Terminals
let url: string
let addresses: { amqp: string; management: string }
beforeAll(async () => {
  await services('up', 'tmux')
  broken = await incident(ends)
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const config = {
    database: { url: broken.database },
    listen: `127.0.0.1:${port}`,
    auth: { development: { name: 'ada' } },
    approval: 'anyone',
    sources: { orders: { rabbitmq: { url: broken.amqp, queue: QUEUE }, handler: 'billing' } },
    shutdown: { readinessDelay: '0ms' },
    // No alerts: they would appear only in the log of a slow test run.
    alerts: { age: '1d', dominanceCount: 1_000 },
  }
  const folder = project(config)
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
  addresses = { amqp: broken.amqp, management: await managementOf(broken.vhost) }
}, 300_000)
afterAll(async () => {
  for (const end of ends.reverse()) await end()
})

async function managementOf(vhost: string): Promise<string> {
  const management = new URL((await urlsOf('rabbitmq')).at(-1) as string)
  management.searchParams.set('vhost', vhost)
  return management.href
}

test('shows the expected terminal from the first peek to a finished replay', async () => {
  const screen = await screens.open('on-call', { NO_COLOR: '1' })
  const server = await screens.open('server', { NO_COLOR: '1' })
  await look(screen, addresses)
  // Without npx, because npx replaces the exit code of the program after Ctrl-C.
  await server.begin('redrive serve', 'Serving api')
  await until(
    'all dead letters are in the catalog',
    async () => (await openAt(url)) === EXPECTED.length,
  )
  const { refused, misshapen } = await triage(screen)
  const colours = await screens.open('colours')
  await colours.type('npx redrive groups list')
  await broken.fix()
  const run = await replay(screen, refused)
  await replay(screen, misshapen)
  await lookBack(screen, run)
  await server.interrupt()
  expect(broken.charged()).toEqual(EXPECTED)
  framesAreLive(screen.bytes(), 23)
  await coloursAreThere(colours)
  isGolden(`${await screen.text()}\n\nIn the window of the server:\n${await server.text()}\n`)
}, 600_000)

async function openAt(server: string): Promise<number | undefined> {
  const { sources } = await createClient({ url: server }).call('listSources', {})
  return sources[0]?.open
}

const FRAME =
  // oxlint-disable-next-line no-control-regex
  /\r(?<bar>[█░]{24}) {2}(?<percent>\d+) % {2}(?<done>\d+) of (?<total>\d+) {2}(?<rest>[^\u001b]*)\u001b\[K/g

/** Checks that the bar was redrawn in its line and only grew. */
function framesAreLive(bytes: string, total: number): void {
  const frames = [...bytes.matchAll(FRAME)]
    .map(({ groups = {} }) => groups)
    .filter((frame) => Number(frame['total']) === total)
  const done = frames.map((frame) => Number(frame['done']))
  expect(done).toEqual(done.toSorted((one, other) => one - other))
  expect(new Set(done).size).toBeGreaterThanOrEqual(3)
  expect([done.at(-1), frames.at(-1)?.['percent']]).toEqual([total, '100'])
  for (const { bar = '', done: one } of frames) {
    expect(bar.replaceAll('░', '')).toHaveLength(Math.round((Number(one) / total) * bar.length))
  }
  expect(frames.map((frame) => frame['rest'])).toContainEqual(
    expect.stringMatching(/\/s {2}.* left$/),
  )
}

/** Checks that there are colours, but not which ones. */
async function coloursAreThere(colours: Terminal): Promise<void> {
  const coloured = await colours.coloured()
  // oxlint-disable-next-line no-control-regex
  const uncoloured = coloured.replace(/\u001b\[[\d;]*m/g, '')
  // oxlint-disable-next-line no-control-regex
  expect(coloured).toMatch(/\u001b\[(?:0;)?1m(?:\u001b\[\d+m)*[0-9a-f]{4} /)
  expect(uncoloured.replace(/ +$/gm, '')).toBe(await colours.text())
}

const GOLDEN = new URL('golden/terminal.txt', import.meta.url)

/** Compares with the golden file. UPDATE_GOLDEN=1 rewrites it. */
function isGolden(shown: string): void {
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(GOLDEN, plain(shown))
  expect(plain(shown)).toBe(readFileSync(GOLDEN, 'utf8'))
}
