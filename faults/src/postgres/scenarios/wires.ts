import type { Evidence, Violation } from '../../evidence.ts'
import { POLICY } from '../../consumer-options.ts'
import { underLoad } from '../../load.ts'
import { type Connection, startProxy } from '../../proxy.ts'
import { checkPunctual, latenessAt, startLateness } from '../../punctual.ts'
import { lasting } from '../../wait.ts'
import { throughPort } from '../database.ts'
import { LEASE_MS, LONG_LEASE_MS, type PostgresScenario, type PostgresWorld } from '../world.ts'

const RATE = 200

/** A wire of its own for consumers, and how they use it; what the harness counts goes another way. */
async function wireTo(world: PostgresWorld) {
  const { database } = world
  const proxy = await startProxy(Number(new URL(database.url).port))
  world.atEnd(() => proxy.close())
  const consumer = { databaseUrl: throughPort(database.url, proxy.port), booksUrl: database.url }
  return { proxy, consumer }
}

export const cuts: PostgresScenario = {
  name: 'cuts',
  story: 'connections are reset again and again, with whatever is on them',
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

/** 1 s without answers, less than the lease of 2 s. */
const UNANSWERED_MS = 1_000

export const answersLost: PostgresScenario = {
  name: 'answers-lost',
  story:
    'the server does what consumers ask and its answers never arrive; then the connections break',
  service: 'postgres',
  messages: { smoke: 600, quick: 1_200, full: 6_000 },
  async play(world) {
    const wires = await Promise.all([wireTo(world), wireTo(world)])
    const load = { consumers: wires.map(({ consumer }) => consumer), ratePerSecond: RATE }
    const times = world.scale === 'full' ? 10 : 2
    await underLoad(world, load, async () => {
      for (let time = 0; time < times; time++) {
        await lasting(1_000)
        const end = world.fault('answers are lost')
        const lost = (wires[time % 2]?.proxy.connections() ?? []).map(loseAnswers)
        await lasting(UNANSWERED_MS)
        for (const connection of wires[time % 2]?.proxy.connections() ?? []) connection.destroy()
        end()
        const note = `${lost.filter((isLost) => isLost()).length} connections lost an answer`
        world.history.write({ what: 'note', text: note })
        world.say(note)
      }
    })
  },
  check: checkUnanswered,
}

const NOTHING = Buffer.alloc(0)

/**
 * Drops the answers to turns, and to a transaction from its commit on: what was asked for is done, and
 * the consumer cannot know. Returns whether an answer was dropped.
 */
function loseAnswers(connection: Connection): () => boolean {
  let isLost = false
  connection.fromServer = (bytes) => {
    isLost ||= connection.greeting.includes('outbox_turn') || bytes.includes('COMMIT')
    return isLost ? NOTHING : bytes
  }
  return () => isLost
}

/** A scenario that lost no answer has proven nothing. */
function checkUnanswered({ entries }: Evidence): readonly Violation[] {
  const notes = entries.flatMap((entry) => (entry.what === 'note' ? [entry.text] : []))
  return notes.some((text) => /^[1-9]\d* connections lost an answer/.test(text))
    ? []
    : [{ rule: 'scenario', text: 'no answer was lost' }]
}

/** Three leases: what the silent ones had in hand belongs to others by then. */
const SILENT_MS = 3 * LEASE_MS

export const halfOpen: PostgresScenario = {
  name: 'half-open',
  story: 'one consumer falls into a black hole, one hears nothing any more; both find another way',
  service: 'postgres',
  messages: { quick: 1_500, full: 6_000 },
  async play(world) {
    const [hole, deaf] = [await wireTo(world), await wireTo(world)]
    const consumers = [hole.consumer, deaf.consumer]
    // Long enough in the handler that transactions are open when it happens. One that waits for a
    // silent connection ends with its attempt.
    const fleet = {
      workMs: 100,
      policy: { ...POLICY, concurrency: 10, limit: 'off', timeout: '10s' },
    } as const
    await underLoad(world, { consumers, fleet, ratePerSecond: 150 }, async () => {
      await lasting(2_000)
      const end = world.fault('silent wires')
      // Only those that are there: a new connection takes another way, as after a fail-over.
      for (const connection of hole.proxy.connections()) connection.mode = 'black-hole'
      for (const connection of deaf.proxy.connections()) connection.mode = 'deaf-client'
      await lasting(SILENT_MS)
      end()
    })
  },
  check: checkStopped,
}

/** A connection that nobody gives back is missing for good, and whoever closes the pool waits for it. */
function checkStopped({ entries }: Evidence): readonly Violation[] {
  return entries.flatMap((entry) =>
    entry.what === 'note' && entry.text.includes('did not stop by itself')
      ? [{ rule: 'scenario', text: entry.text }]
      : [],
  )
}

/** Twice the second within which consumers look by themselves. */
const UNTOLD_MS = 2_000

export const wakeOff: PostgresScenario = {
  name: 'wake-off',
  story:
    'whoever listens for new events is cut off at once; they are found without being announced',
  service: 'postgres',
  messages: { quick: 200, full: 1_000 },
  async play(world) {
    const wire = await wireTo(world)
    wire.proxy.cutAt = /listen /i
    const consumers = [wire.consumer, wire.consumer]
    const load = { consumers, fleet: { lease: LONG_LEASE_MS }, ratePerSecond: 20, mix: {} }
    await underLoad(world, load, async () => undefined)
  },
  tell: (evidence) => `begun ${latenessAt(untoldIn(evidence), 99)} ms after the commit at p99`,
  check: (evidence) => checkPunctual('message of which nobody told', untoldIn(evidence), UNTOLD_MS),
}

const untoldIn = (evidence: Evidence) => startLateness(evidence, () => true)
