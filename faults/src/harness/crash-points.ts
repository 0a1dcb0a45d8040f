import { duplicatesIn } from '../evidence/check.ts'
import type { Evidence, Violation } from '../evidence/evidence.ts'
import { type ConsumerOptions, type JsonPolicy, POLICY } from './consumer-options.ts'
import { type FleetOptions, ready } from './fleet.ts'
import type { Kind } from '../evidence/message.ts'
import { becomesTrue } from './wait.ts'
import type { World } from './world.ts'

/** A point at which a step may be half done, and how a consumer is made to die there. */
export interface Boundary<Options extends ConsumerOptions = ConsumerOptions> {
  readonly name: string
  /** The kind of message that leads to this point. */
  readonly kind: Kind
  /** Consumers that die in sequence; the last one at the boundary. */
  readonly consumers: readonly Partial<FleetOptions<Options>>[]
}

/** One message in flight, so that a kill causes at most one duplicate. */
export const ONE_BY_ONE: JsonPolicy = { ...POLICY, concurrency: 1, poison: { repeats: 2 } }

/** The first failure opens the breaker, and the message is returned. */
export const OPENS_AT_ONCE: JsonPolicy = {
  ...ONE_BY_ONE,
  outage: {},
  breaker: { trip: { kind: 'consecutive', failures: 1 }, minOpen: '1s' },
}

/** The consumer that finishes the remaining messages. */
const HEALTHY = { policy: ONE_BY_ONE, workMs: 0 } as const

/** One death for each boundary and message. */
export const DEATHS = { smoke: 1, quick: 1, full: 5 } as const

/** A consumer that dies at a point of its work. */
interface DyingConsumer<Failpoint> {
  readonly policy: JsonPolicy
  readonly workMs: number
  readonly isDependencyDown: boolean
  readonly failpoint: Failpoint
}

/** Returns a boundary at which one consumer dies. */
export function deathAt<Failpoint>(
  name: string,
  kind: Kind,
  failpoint: Failpoint,
): { name: string; kind: Kind; consumers: readonly DyingConsumer<Failpoint>[] } {
  const policy = kind === 'outage' ? OPENS_AT_ONCE : ONE_BY_ONE
  return { name, kind, consumers: [{ policy, workMs: 0, isDependencyDown: true, failpoint }] }
}

/**
 * Returns a separate queue for each boundary, so that no other consumer takes its messages before
 * the death.
 */
export const queuesOf = ({ run }: World, boundaries: readonly unknown[]): readonly string[] =>
  boundaries.map((_, index) => `${run}-${index}`)

/** Number of concurrent boundaries; each starts processes on the available cores. */
const AT_ONCE = 3
/** 90 s: a start may take sixty, and retries take a few. */
const REACHED_MS = 90_000
/**
 * 30 s in a mutant run. Some mutants never reach a boundary, and their other deaths are what
 * counts.
 */
const REACHED_AT_FIRST_MS = 30_000

/** Lets a consumer die at every boundary. Then one healthy consumer finishes all remaining messages. */
export async function dieAtEach<Options extends ConsumerOptions>(
  world: World<Options>,
  boundaries: readonly Boundary<Options>[],
  special: Partial<FleetOptions<Options>> = {},
): Promise<void> {
  const queues = queuesOf(world, boundaries)
  const end = world.fault('deaths at every boundary')
  const waiting = boundaries.entries()
  // A boundary that was never reached does not stop the others.
  const problems: unknown[] = []
  const worker = async () => {
    for (const [index, one] of waiting) {
      await dieAt(world, one, queues[index] as string).catch((error) => problems.push(error))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  if (problems.length > 0) throw new Error(problems.join('\n'))
  end()
  world.heal()
  const fleet = world.fleet({ ...HEALTHY, ...special } as Partial<FleetOptions<Options>>)
  fleet.start({ queues } as Partial<FleetOptions<Options>>)
  await ready(fleet, 1)
}

/** Sends messages and waits until their consumer has killed itself at the configured point. */
async function dieAt<Options extends ConsumerOptions>(
  world: World<Options>,
  { name, kind, consumers }: Boundary<Options>,
  queue: string,
): Promise<void> {
  const ids = Array.from({ length: world.messages }, (_, count) => `${queue}/${count}`)
  await world.send(
    queue,
    ids.map((id) => ({ id, kind })),
  )
  for (const consumer of consumers) {
    const fleet = world.fleet({ ...consumer, queues: [queue] })
    const member = fleet.start()
    const withinMs = world.stopAtFirst ? REACHED_AT_FIRST_MS : REACHED_MS
    if (await becomesTrue(() => !member.isAlive, { withinMs })) continue
    await fleet.stop()
    throw new Error(`${name} was never reached`)
  }
  world.say(name)
}

/** Returns the boundary of a message: the number at the end of its queue name. */
const indexIn = (id: string) => Number(/-(\d+)\//.exec(id)?.[1])

/** Checks that every death happened where planned, and that no death caused more than one duplicate. */
export function checkDeaths(
  evidence: Evidence,
  boundaries: readonly Boundary[],
): readonly Violation[] {
  const planned = boundaries.reduce((sum, { consumers }) => sum + consumers.length, 0)
  const deaths = evidence.entries.filter(({ what }) => what === 'dies').length
  const missing: readonly Violation[] =
    deaths === planned
      ? []
      : [{ rule: 'scenario', text: `${deaths} deaths where they were planned, ${planned} planned` }]
  const deathsOf = (id: string) => boundaries[indexIn(id)]?.consumers.length ?? 0
  const tooMany = duplicatesIn(evidence).filter(([id, surplus]) => surplus > deathsOf(id))
  return [
    ...missing,
    ...tooMany.map(([id, surplus]) => ({
      rule: 'duplicates over the bound' as const,
      id,
      text: `${surplus} duplicates after ${deathsOf(id)} deaths`,
    })),
  ]
}
