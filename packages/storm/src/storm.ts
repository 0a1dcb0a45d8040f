import { type PolicyOptions, type Random, seededRandom } from '@redrive/core'
import { deadLetterQueue, MemoryBroker, memory, send } from '@redrive/memory'
import { consume } from '@redrive/runtime'
import { VirtualTime } from './time.ts'
import { Dependency, type OutageKind } from './dependency.ts'
import { highestOf } from './highest.ts'
import { expectedDrainMs, ShortestDrain } from './minimum.ts'

export interface StormOptions {
  /** The policy. Its `timeout` is 1 s by default; its `concurrency` is ignored. */
  readonly policy: PolicyOptions
  readonly kind: OutageKind
  readonly outageMs: number
  /** Attempts in flight in the whole fleet. */
  readonly concurrency: number
  readonly arrivalsPerSecond: number
  /** Calls per second that the dependency can serve; more than the arrivals. */
  readonly capacityPerSecond: number
  readonly seed: number
}

export interface StormResult {
  /** Messages that arrived. */
  readonly messages: number
  readonly attemptsPerMessage: number
  /** Share of good messages given up. */
  readonly falseDeadLetters: number
  /** Time from the end of the outage; undefined when it had not drained at the horizon. */
  readonly drainMs: number | undefined
  /** The shortest possible time for the arrivals of this run. */
  readonly minimumMs: number
  /** Highest load in any second since the outage began, as a multiple of the arrivals. */
  readonly peak: number
  /** Calls per second since the start, for the plot. */
  readonly load: readonly number[]
}

/** Duration of normal operation before the outage. */
export const CALM_MS = 30_000
/** Timeout of a policy that sets none. */
export const TIMEOUT_MS = 1_000
/** Processes without shared state; the fleet's concurrency is divided between them. */
export const PROCESSES = 10
/** Drained: the source has no more messages than arrive in a quarter of a second. */
const DRAINED_SHARE = 0.25
/** Limits to stop early: a fifth of the good messages given up, or four calls per message. */
const HOPELESS_SHARE = 0.2
const HOPELESS_ATTEMPTS = 4
/** Minimum time to simulate after the outage, for the plot. */
const SHOWN_MS = 120_000
/** Twice the shortest possible drain. A policy that needs longer will not drain. */
const HORIZON_SHARE = 2

export async function simulateOutage(options: StormOptions): Promise<StormResult> {
  const random = seededRandom(options.seed)
  const time = new VirtualTime(random)
  const broker = new MemoryBroker({ clock: time })
  const startedAt = time.now()
  const outageFrom = startedAt + CALM_MS
  const outageUntil = outageFrom + options.outageMs
  const dependency = new Dependency(time, { ...options, outageFrom, outageUntil })
  const horizon = outageUntil + expectedDrainMs(options) * HORIZON_SHARE + 60_000
  const drainedDepth = Math.floor(options.arrivalsPerSecond * DRAINED_SHARE)
  const serviceMs = 1_000 / options.capacityPerSecond
  const shortest = new ShortestDrain({
    kind: options.kind,
    outageFrom,
    outageUntil,
    serviceMs,
    drainedDepth,
  })
  const sent = { count: 0 }
  arrive(time, random, options, (at) => {
    sent.count += 1
    shortest.arrive(at)
    send(broker, QUEUE, BODY, { id: `m${sent.count}` })
  })
  await startFleet(time, random, broker, dependency, options)
  const isHopeless = () =>
    givenUp(broker) > sent.count * HOPELESS_SHARE ||
    dependency.calls > sent.count * HOPELESS_ATTEMPTS
  const drainedAt = await play(time, broker, { outageUntil, horizon, drainedDepth, isHopeless })
  const given = givenUp(broker)
  broker.close()
  const load = Array.from(dependency.callsPerSecond, (calls) => calls ?? 0)
  return {
    messages: sent.count,
    attemptsPerMessage: dependency.calls / sent.count,
    falseDeadLetters: given / sent.count,
    drainMs: drainedAt === undefined ? undefined : drainedAt - outageUntil,
    minimumMs: shortest.ms,
    peak: highestOf(load.slice(CALM_MS / 1_000)) / options.arrivalsPerSecond,
    load,
  }
}

const QUEUE = 'orders'

/** Creates Poisson arrivals until the end of the run. */
function arrive(
  time: VirtualTime,
  random: Random,
  { arrivalsPerSecond }: StormOptions,
  onArrival: (at: number) => void,
): void {
  let at = time.now()
  const next = () => {
    onArrival(at)
    plan()
  }
  const plan = () => {
    at += (-Math.log(1 - random()) * 1_000) / arrivalsPerSecond
    time.after(at - time.now(), next)
  }
  plan()
}

const BODY = new TextEncoder().encode('{}')

async function startFleet(
  time: VirtualTime,
  random: Random,
  broker: MemoryBroker,
  dependency: Dependency,
  { policy, concurrency }: StormOptions,
): Promise<void> {
  const processes = Math.min(PROCESSES, concurrency)
  for (let index = 0; index < processes; index++) {
    const shared = memory({ broker, queue: QUEUE })
    // All simulated processes are in one real process.
    const transport = Object.assign(shared, { group: { name: QUEUE, owner: shared } })
    await consume(transport, callUntilAborted(dependency), {
      timeout: TIMEOUT_MS,
      ...policy,
      concurrency: Math.ceil(concurrency / processes),
      clock: time,
      random: random,
      logger: 'off',
    })
  }
}

/** A handler that ends when its signal fires. The dependency finishes the call all the same. */
const callUntilAborted =
  (dependency: Dependency) =>
  (_: unknown, { signal }: { readonly signal: AbortSignal }): Promise<void> =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
      dependency.call().then(resolve, reject)
    })

const givenUp = (broker: MemoryBroker) => broker.depth(deadLetterQueue(QUEUE))

async function play(
  time: VirtualTime,
  broker: MemoryBroker,
  until: { outageUntil: number; horizon: number; drainedDepth: number; isHopeless: () => boolean },
): Promise<number | undefined> {
  while (await time.step(until.outageUntil)) continue
  const judgedFrom = until.outageUntil + SHOWN_MS
  while (await time.step(until.horizon)) {
    if (broker.depth(QUEUE) <= until.drainedDepth) return time.now()
    if (time.now() > judgedFrom && until.isHopeless()) return undefined
  }
  return undefined
}
