import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Pool } from 'pg'
import type { Found } from '../check.ts'
import { openHistory, type HistoryWriter } from '../history.ts'
import { END_OF, type End, type Mix, plan, type PlannedMessage, USUAL_MIX } from '../message.ts'
import type { Scale, Scenario } from '../scenario.ts'
import type { Broker } from './broker.ts'
import type { JsonPolicy } from './consumer-options.ts'
import { type Fleet, type FleetOptions, fleetOf } from './fleet.ts'
import { produce } from './producer.ts'

export interface RabbitScenario extends Scenario<World> {
  /** The cluster only where one node is not enough, or must not be harmed. */
  readonly service: 'rabbitmq' | 'rabbitmq-cluster'
}

/** One run of a scenario: its queue, its processes, its history. */
export interface World {
  readonly run: string
  readonly scale: Scale
  readonly broker: Broker
  readonly folder: string
  readonly history: HistoryWriter
  readonly pool: Pool
  readonly messages: number
  /** Consumers of the run's queue, unless told otherwise. */
  fleet(options?: Partial<FleetOptions>): Fleet
  /** Sends the messages of a mix; resolves when the broker has answered for all of them. */
  produce(options: Load): Promise<void>
  /** Sends exactly these, to a queue. */
  send(queue: string, messages: readonly PlannedMessage[], ratePerSecond?: number): Promise<void>
  /** Something breaks; the answer is called when it is whole again. */
  fault(name: string, interrupted?: number): () => void
  /** The last fault is over: from now on the recovery is timed. */
  heal(): void
  say(text: string): void
  /** To be undone when the last consumer has gone, whatever happened. */
  atEnd(undo: () => Promise<unknown>): void
  end(): Promise<void>
  /** Acknowledged messages, by where they must end. */
  readonly expected: Readonly<Record<End, number>>
  /** Messages that the scenario itself took out of the broker, as an operator would. */
  readonly taken: Found[]
  /** Everything that must be stopped at the end. */
  readonly fleets: readonly Fleet[]
}

export interface Load {
  readonly ratePerSecond: number
  readonly mix?: Mix
  readonly messages?: number
  /** Tells the plans of a scenario that sends several apart. */
  readonly part?: string
}

/**
 * Retries come back within seconds and always by way of the broker, because that way is under test.
 * The guards that look at failures are off: when the load is over and only what fails on purpose is
 * left, they would rightly take it for an outage and wait. What they conclude is the simulator's subject.
 */
export const POLICY: JsonPolicy = {
  concurrency: 20,
  retry: {
    attempts: 8,
    backoff: { kind: 'exponential', base: '200ms', cap: '2s' },
    inlineBelow: 0,
  },
  breaker: 'off',
  outage: 'off',
  budget: 'off',
  flood: 'off',
}

export interface WorldParts {
  readonly scenario: RabbitScenario
  readonly scale: Scale
  readonly messages: number | undefined
  readonly broker: Broker
  readonly pool: Pool
  readonly databaseUrl: string
  readonly reports: string
  readonly print: (text: string) => void
}

export function worldOf(parts: WorldParts): World {
  const { scenario, scale, broker, pool, databaseUrl } = parts
  const run = `faults-${scenario.name}-${randomBytes(4).toString('hex')}`
  const folder = join(parts.reports, run)
  const history = openHistory(folder, 'harness')
  const expected: Record<End, number> = { effect: 0, dlq: 0, quarantine: 0, delay: 0 }
  const fleets: Fleet[] = []
  const undos: (() => Promise<unknown>)[] = []
  let processes = 0
  const nextName = () => {
    processes += 1
    return `consumer-${processes}`
  }
  const producer = counting(openHistory(folder, 'producer'), expected)

  const planned = parts.messages ?? scenario.messages[scale]
  const say = (text: string) => parts.print(`  ${scenario.name}: ${text}`)

  const send: World['send'] = (queue, messages, ratePerSecond = 1_000) =>
    produce({ urls: broker.urls, queue, messages, ratePerSecond, history: producer })

  return {
    run,
    scale,
    broker,
    folder,
    history,
    pool,
    expected,
    fleets,
    taken: [],
    messages: planned,
    fleet(options = {}) {
      const common = { folder, run, databaseUrl, urls: broker.urls, queues: [run], policy: POLICY }
      const fleet = fleetOf({ ...common, workMs: 5, ...options }, history, nextName)
      fleets.push(fleet)
      return fleet
    },
    produce({ ratePerSecond, mix = USUAL_MIX, messages = planned, part = '' }) {
      return send(run, plan(`${run}${part}`, messages, mix), ratePerSecond)
    },
    send,
    fault(name, interrupted = 0) {
      history.write({ what: 'fault', phase: 'begins', name, interrupted })
      say(`${name} …`)
      return () => {
        history.write({ what: 'fault', phase: 'ends', name, interrupted: 0 })
        say(`… ${name} is over`)
      }
    },
    heal() {
      history.write({ what: 'healed' })
    },
    say,
    atEnd: (undo) => void undos.push(undo),
    async end() {
      await Promise.all(fleets.map((fleet) => fleet.stop()))
      for (const undo of undos.splice(0)) await undo()
    },
  }
}

/** Counts what was acknowledged, by where it must end. */
function counting(history: HistoryWriter, expected: Record<End, number>): HistoryWriter {
  const ends = new Map<string, End>()
  return {
    write(fact) {
      if (fact.what === 'attempted') ends.set(fact.id, END_OF[fact.kind])
      const end = fact.what === 'acknowledged' ? ends.get(fact.id) : undefined
      if (end !== undefined) expected[end] += 1
      history.write(fact)
    },
  }
}
