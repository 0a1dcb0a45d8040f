import { POLICY } from '../../consumer-options.ts'
import { ready } from '../../fleet.ts'
import { plan, USUAL_MIX } from '../../message.ts'
import { checkOrder } from '../../order.ts'
import { checkPunctual, latenessAt, startLateness } from '../../punctual.ts'
import type { PlannedEvent } from '../producer.ts'
import { LONG_LEASE_MS, type PostgresScenario } from '../world.ts'

/** 100 at once, which is half of what the server takes. */
const TRANSACTIONS = 100
/** Few enough that several transactions add to the same one at the same time. */
const LANES = 40
/** A second, for each of the two queues: nobody should wait for anything but a commit. */
const RATE = 100
/** Twice the second within which consumers look at everything that is due. */
const LATE_MS = 2_000
/** Of a hundred transactions, so many are rolled back. */
const ABORTED = 15

export const longTransactions: PostgresScenario = {
  name: 'long-transactions',
  story: `up to ${TRANSACTIONS} transactions at once, some of them for seconds, commit and abort in any order`,
  service: 'postgres',
  producers: TRANSACTIONS,
  messages: { quick: 2_000, full: 10_000 },
  async play(world) {
    const { run } = world
    const lanes = `${run}-lanes`
    const fleet = world.fleet({ policy: { ...POLICY, limit: 'off' }, lease: LONG_LEASE_MS })
    fleet.start()
    fleet.start({ queues: [lanes], policy: { ...POLICY, limit: 'off', order: 'lane' } })
    fleet.start({ queues: [lanes], policy: { ...POLICY, limit: 'off', order: 'lane' } })
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
  tell(evidence) {
    const late = startLateness(evidence, isWithoutLane)
    return `begun ${latenessAt(late, 50)} ms after the commit at p50, ${latenessAt(late, 99)} ms at p99, ${latenessAt(late, 100)} ms at most`
  },
  check: (evidence) => [
    ...checkOrder(evidence.entries, laneOf),
    ...checkPunctual('committed message', startLateness(evidence, isWithoutLane), LATE_MS),
  ],
}

const isWithoutLane = (id: string) => laneOf(id) === undefined

/** The lane is part of the id, so that the checker knows it without asking anybody. */
const inLane = ({ id, kind }: PlannedEvent, index: number): PlannedEvent => {
  const lane = `lane-${index % LANES}`
  return { id: id.replace('/', `/${lane}/`), kind, lane }
}

const laneOf = (id: string): string | undefined => /\/(lane-\d+)\//.exec(id)?.[1]

function inLongTransaction(event: PlannedEvent, index: number): PlannedEvent {
  return { ...event, holdMs: holdMs(index % 100), isAborted: Math.random() * 100 < ABORTED }
}

/** Most are short, some take a while, and five of a hundred take seconds. */
function holdMs(percent: number): number {
  if (percent < 80) return Math.random() * 20
  return percent < 95 ? 100 + Math.random() * 400 : 1_000 + Math.random() * 2_000
}
