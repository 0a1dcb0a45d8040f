import { POLICY } from '../../harness/consumer-options.ts'
import { ready } from '../../harness/fleet.ts'
import { plan, USUAL_MIX } from '../../evidence/message.ts'
import { checkOrder } from '../../evidence/check-order.ts'
import { checkPunctual, latenessAt, startLateness } from '../../evidence/lateness.ts'
import type { PlannedEvent } from '../producer.ts'
import { LONG_LEASE_MS, type PostgresScenario } from '../world.ts'

/** 100 concurrent transactions, half of what the server allows. */
const TRANSACTIONS = 100
/** Few enough that several transactions add to the same lane concurrently. */
const LANES = 40
/** Messages per second for each of the two queues: a message waits only for a commit. */
const RATE = 100
/** Twice the second in which consumers check everything that is due. */
const LATE_MS = 2_000
/** Number of transactions in a hundred that are rolled back. */
const ABORTED = 15

export const longTransactions: PostgresScenario = {
  name: 'long-transactions',
  story: `up to ${TRANSACTIONS} concurrent transactions, some open for seconds, commit and abort in any order`,
  service: 'postgres',
  producers: TRANSACTIONS,
  messages: { quick: 2_000, full: 10_000 },
  async play(world) {
    const { run } = world
    const lanes = `${run}-lanes`
    const fleet = world.fleet({
      policy: { ...POLICY, adaptiveConcurrency: 'off' },
      lease: LONG_LEASE_MS,
    })
    fleet.start()
    fleet.start({
      queues: [lanes],
      policy: { ...POLICY, adaptiveConcurrency: 'off', order: 'lane' },
    })
    fleet.start({
      queues: [lanes],
      policy: { ...POLICY, adaptiveConcurrency: 'off', order: 'lane' },
    })
    await ready(fleet, 3)
    const half = Math.ceil(world.messages / 2)
    const end = world.fault('long transactions')
    await Promise.all([
      world.send(run, plan(run, half, USUAL_MIX).map(inLongTransaction), RATE),
      world.send(lanes, plan(lanes, half, USUAL_MIX).map(inLane).map(inLongTransaction), RATE),
    ])
    end()
    world.heal()
  },
  summarize(evidence) {
    const late = startLateness(evidence, isWithoutLane)
    return `started ${latenessAt(late, 50)} ms after the commit at p50, ${latenessAt(late, 99)} ms at p99, ${latenessAt(late, 100)} ms at most`
  },
  check: (evidence) => [
    ...checkOrder(evidence.entries, laneOf),
    ...checkPunctual('committed message', startLateness(evidence, isWithoutLane), LATE_MS),
  ],
}

const isWithoutLane = (id: string) => laneOf(id) === undefined

/** Puts the lane into the id, so that the checker can read it there. */
const inLane = ({ id, kind }: PlannedEvent, index: number): PlannedEvent => {
  const lane = `lane-${index % LANES}`
  return { id: id.replace('/', `/${lane}/`), kind, lane }
}

const laneOf = (id: string): string | undefined => /\/(lane-\d+)\//.exec(id)?.[1]

function inLongTransaction(event: PlannedEvent, index: number): PlannedEvent {
  return { ...event, holdMs: holdMs(index % 100), isAborted: Math.random() * 100 < ABORTED }
}

/**
 * Returns how long a transaction stays open. Most are short, some take a while, and five in a
 * hundred take seconds.
 */
function holdMs(percent: number): number {
  if (percent < 80) return Math.random() * 20
  return percent < 95 ? 100 + Math.random() * 400 : 1_000 + Math.random() * 2_000
}
