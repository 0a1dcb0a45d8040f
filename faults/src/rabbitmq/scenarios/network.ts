import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { readHistory } from '../../evidence/history.ts'
import { type Proxy, startProxy } from '../../harness/proxy.ts'
import { becomesTrue, lasting } from '../../harness/wait.ts'
import { type ConfirmFilter, withoutConfirms } from '../frames.ts'
import type { RabbitScenario, RabbitWorld } from '../world.ts'
import { underLoad } from './load.ts'

const RATE = 350

/** Starts a proxy in front of the first node and returns its address. */
async function wireTo(
  world: RabbitWorld,
): Promise<{ readonly proxy: Proxy; readonly url: string }> {
  const url = new URL(world.broker.urls[0] ?? '')
  const proxy = await startProxy(Number(url.port))
  world.atEnd(() => proxy.close())
  url.port = String(proxy.port)
  return { proxy, url: url.href }
}

/**
 * Three heartbeats of 10 s. A silent connection is closed at the second check in a row without
 * data. The first check after the fault mostly finds data from before. 10 s more for a busy
 * machine.
 */
const NOTICED_MS = 3 * 10_000 + 10_000

export const halfOpen: RabbitScenario = {
  name: 'half-open',
  story: 'one consumer is in a black hole, one receives nothing any more; noticed within 40 s',
  service: 'rabbitmq',
  messages: { quick: 1_500, full: 12_000 },
  async play(world) {
    const hole = await wireTo(world)
    const deaf = await wireTo(world)
    const consumers = [{ urls: [hole.url] }, { urls: [deaf.url] }]
    const load = { consumers, ratePerSecond: RATE }
    await underLoad(world, load, async () => {
      await lasting(3_000)
      const end = world.fault('silent wires')
      // Only existing connections. A new one uses another way, as after a failover.
      for (const connection of hole.proxy.connections()) connection.mode = 'black-hole'
      for (const connection of deaf.proxy.connections()) connection.mode = 'deaf-client'
      const hasNoticed = () =>
        noticedIn({ entries: readHistory(world.folder) }).length >= consumers.length
      await becomesTrue(hasNoticed, { withinMs: NOTICED_MS, everyMs: 500 })
      end()
    })
  },
  summarize: (evidence) =>
    `noticed after ${(Math.max(0, ...noticedIn(evidence)) / 1_000).toFixed(1)} s`,
  check(evidence) {
    const inTime = noticedIn(evidence).filter((ms) => ms <= NOTICED_MS).length
    return inTime >= 2
      ? []
      : [{ rule: 'scenario', text: `a silent connection was not noticed within ${NOTICED_MS} ms` }]
  },
}

/** Returns the time after which each consumer noticed. */
function noticedIn({ entries }: Pick<Evidence, 'entries'>): readonly number[] {
  const begins = entries.find((entry) => entry.what === 'fault')?.at ?? 0
  const first = new Map<string, number>()
  for (const { at, by, ...entry } of entries) {
    const isNews = entry.what === 'event' && entry.type === 'connection_lost' && !first.has(by)
    if (isNews) first.set(by, at - begins)
  }
  return [...first.values()]
}

/** The transport names its connections after their purpose. */
const PUBLISHES = '(publish)'

export const confirmDropped: RabbitScenario = {
  name: 'confirm-dropped',
  story:
    'the broker accepts copies and its confirms never arrive, or the copies never arrive; then the connection breaks',
  service: 'rabbitmq',
  messages: { smoke: 1_000, quick: 1_500, full: 10_000 },
  async play(world) {
    const { proxy, url } = await wireTo(world)
    const load = { consumers: 2, ratePerSecond: RATE, fleet: { urls: [url] } }
    await underLoad(world, load, async () => {
      for (let time = 0; time < (world.scale === 'full' ? 6 : 2); time++) {
        await lasting(1_000)
        await (time % 2 === 0 ? dropConfirms(world, proxy) : dropCopies(world, proxy))
      }
    })
  },
  check: checkDropped,
}

const publishersOf = (proxy: Proxy) =>
  proxy.connections().filter(({ greeting }) => greeting.includes(PUBLISHES))

const DROPPED_MS = 1_000

/** The broker has the copies; a second copy of each is the cost. */
async function dropConfirms(world: RabbitWorld, proxy: Proxy): Promise<void> {
  const end = world.fault('confirms are dropped')
  const filters = publishersOf(proxy).map((connection): ConfirmFilter => {
    const filter = withoutConfirms()
    connection.fromServer = filter.pass
    return filter
  })
  await lasting(DROPPED_MS)
  breakPublishers(proxy)
  end()
  const dropped = filters.reduce((sum, filter) => sum + filter.dropped(), 0)
  world.history.write({ what: 'note', text: `${dropped} confirms dropped` })
  world.say(`${dropped} confirms dropped`)
}

/** The broker never gets the copies. An original that was acknowledged before its confirm is lost. */
async function dropCopies(world: RabbitWorld, proxy: Proxy): Promise<void> {
  const end = world.fault('copies are dropped')
  for (const connection of publishersOf(proxy)) connection.mode = 'black-hole'
  await lasting(DROPPED_MS)
  breakPublishers(proxy)
  end()
}

function breakPublishers(proxy: Proxy): void {
  for (const connection of publishersOf(proxy)) connection.destroy()
}

/** Checks that confirms were dropped; otherwise the scenario proves nothing. */
function checkDropped({ entries }: Evidence): readonly Violation[] {
  const notes = entries.flatMap((entry) => (entry.what === 'note' ? [entry.text] : []))
  return notes.some((text) => /^[1-9]\d* confirms dropped/.test(text))
    ? []
    : [{ rule: 'scenario', text: 'no confirm was dropped' }]
}
