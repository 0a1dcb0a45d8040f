import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { POLICY } from '../../harness/consumer-options.ts'
import { underLoad } from '../../harness/load.ts'
import { type Connection, startProxy } from '../../harness/proxy.ts'
import { checkPunctual, latenessAt, startLateness } from '../../evidence/lateness.ts'
import { lasting } from '../../harness/wait.ts'
import { throughPort } from '../database.ts'
import { LEASE_MS, LONG_LEASE_MS, type PostgresScenario, type PostgresWorld } from '../world.ts'

const RATE = 200

/** Starts a separate proxy for consumers. The harness uses a direct connection. */
async function wireTo(world: PostgresWorld) {
  const { database } = world
  const proxy = await startProxy(Number(new URL(database.url).port))
  world.atEnd(() => proxy.close())
  const consumer = { databaseUrl: throughPort(database.url, proxy.port), booksUrl: database.url }
  return { proxy, consumer }
}

export const cuts: PostgresScenario = {
  name: 'cuts',
  story: 'connections are reset repeatedly, with requests in flight',
  service: 'postgres',
  messages: { quick: 1_500, full: 9_000 },
  async play(world) {
    const wires = await Promise.all([wireTo(world), wireTo(world)])
    const load = { consumers: wires.map(({ consumer }) => consumer), ratePerSecond: RATE }
    const times = world.scale === 'full' ? 40 : 8
    await underLoad(world, load, async () => {
      const end = world.fault('resets')
      for (let time = 0; time < times; time++) {
        await lasting(300 + Math.random() * 400)
        for (const connection of wires[time % 2]?.proxy.connections() ?? []) connection.destroy()
      }
      end()
    })
  },
}

/** 1 s without responses, less than the lease of 2 s. */
const UNANSWERED_MS = 1_000

export const answersLost: PostgresScenario = {
  name: 'answers-lost',
  story: 'the server executes queries and its responses never arrive; then the connections break',
  service: 'postgres',
  messages: { smoke: 600, quick: 1_200, full: 6_000 },
  async play(world) {
    const wires = await Promise.all([wireTo(world), wireTo(world)])
    const load = { consumers: wires.map(({ consumer }) => consumer), ratePerSecond: RATE }
    const times = world.scale === 'full' ? 10 : 2
    await underLoad(world, load, async () => {
      for (let time = 0; time < times; time++) {
        await lasting(1_000)
        const end = world.fault('responses are lost')
        const lost = (wires[time % 2]?.proxy.connections() ?? []).map(loseAnswers)
        await lasting(UNANSWERED_MS)
        for (const connection of wires[time % 2]?.proxy.connections() ?? []) connection.destroy()
        end()
        const note = `${lost.filter((isLost) => isLost()).length} connections lost a response`
        world.history.write({ what: 'note', text: note })
        world.say(note)
      }
    })
  },
  check: checkUnanswered,
}

const NOTHING = Buffer.alloc(0)

/**
 * Drops the responses to turns, and to a transaction from its commit on. The query is executed, and
 * the consumer cannot know it. Returns a function that reports whether a response was dropped.
 */
function loseAnswers(connection: Connection): () => boolean {
  let isLost = false
  connection.fromServer = (bytes) => {
    isLost ||= connection.greeting.includes('outbox_turn') || bytes.includes('COMMIT')
    return isLost ? NOTHING : bytes
  }
  return () => isLost
}

/** Checks that responses were lost; otherwise the scenario proves nothing. */
function checkUnanswered({ entries }: Evidence): readonly Violation[] {
  const notes = entries.flatMap((entry) => (entry.what === 'note' ? [entry.text] : []))
  return notes.some((text) => /^[1-9]\d* connections lost a response/.test(text))
    ? []
    : [{ rule: 'scenario', text: 'no response was lost' }]
}

/** Three leases: by then other consumers own the messages of the silent ones. */
const SILENT_MS = 3 * LEASE_MS

export const halfOpen: PostgresScenario = {
  name: 'half-open',
  story: 'one consumer is in a black hole, one receives nothing any more; both use new connections',
  service: 'postgres',
  messages: { quick: 1_500, full: 6_000 },
  async play(world) {
    const [hole, deaf] = [await wireTo(world), await wireTo(world)]
    const consumers = [hole.consumer, deaf.consumer]
    // The handler is slow enough that transactions are open at the fault. A transaction that waits
    // for a silent connection ends with its attempt.
    const fleet = {
      workMs: 100,
      policy: { ...POLICY, concurrency: 10, adaptiveConcurrency: 'off', timeout: '10s' },
    } as const
    await underLoad(world, { consumers, fleet, ratePerSecond: 150 }, async () => {
      await lasting(2_000)
      const end = world.fault('silent wires')
      // Only existing connections. A new one uses another way, as after a failover.
      for (const connection of hole.proxy.connections()) connection.mode = 'black-hole'
      for (const connection of deaf.proxy.connections()) connection.mode = 'deaf-client'
      await lasting(SILENT_MS)
      end()
    })
  },
  check: checkStopped,
}

/**
 * Checks that all consumers stopped. A connection that is never returned to the pool blocks the
 * closing of the pool.
 */
function checkStopped({ entries }: Evidence): readonly Violation[] {
  return entries.flatMap((entry) =>
    entry.what === 'note' && entry.text.includes('did not stop when requested')
      ? [{ rule: 'scenario', text: entry.text }]
      : [],
  )
}

/** Twice the second in which consumers check without a notification. */
const UNNOTIFIED_MS = 2_000

export const wakeOff: PostgresScenario = {
  name: 'wake-off',
  story:
    'the listeners for new events are cut off immediately; events are found without a notification',
  service: 'postgres',
  messages: { quick: 200, full: 1_000 },
  async play(world) {
    const wire = await wireTo(world)
    wire.proxy.cutAt = /listen /i
    const consumers = [wire.consumer, wire.consumer]
    const load = { consumers, fleet: { lease: LONG_LEASE_MS }, ratePerSecond: 20, mix: {} }
    await underLoad(world, load, async () => undefined)
  },
  summarize: (evidence) =>
    `started ${latenessAt(unnotifiedIn(evidence), 99)} ms after the commit at p99`,
  check: (evidence) =>
    checkPunctual('message without a notification', unnotifiedIn(evidence), UNNOTIFIED_MS),
}

const unnotifiedIn = (evidence: Evidence) => startLateness(evidence, () => true)
