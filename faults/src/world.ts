import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { ConsumerOptions } from './consumer-options.ts'
import { type Fleet, type FleetOptions, fleetOf } from './fleet.ts'
import { openHistory, type HistoryWriter } from './history.ts'
import { END_OF, type End, type Mix, plan, type PlannedMessage, USUAL_MIX } from './message.ts'
import { atScale, type Scale, type Scenario } from './scenario.ts'
import { watchStandstills } from './standstill.ts'

/** One run of a scenario, whatever the server: its processes, its messages, its history. */
export interface World<
  Options extends ConsumerOptions = ConsumerOptions,
  Planned extends PlannedMessage = PlannedMessage,
> {
  readonly run: string
  readonly scale: Scale
  /** Whether to wait no longer than needed for what a mutant may have made impossible. */
  readonly stopAtFirst: boolean
  readonly folder: string
  readonly history: HistoryWriter
  readonly messages: number
  /** Consumers of the run's queue, unless told otherwise. */
  fleet(options?: Partial<FleetOptions<Options>>): Fleet<Options>
  /** Sends the messages of a mix; resolves when the server has answered for all of them. */
  produce(load: Load): Promise<void>
  /** Sends exactly these, to a queue. */
  send(queue: string, messages: readonly Planned[], ratePerSecond?: number): Promise<void>
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
  /** Everything that must be stopped at the end. */
  readonly fleets: readonly Fleet<Options>[]
}

export interface Load {
  readonly ratePerSecond: number
  readonly mix?: Mix
  readonly messages?: number
  /** Tells the plans of a scenario that sends several apart. */
  readonly part?: string
}

/** What is the same for all scenarios of a session. */
export interface Session {
  readonly scale: Scale
  /** Instead of what the scenarios have in mind. */
  readonly messages: number | undefined
  readonly stopAtFirst: boolean
  readonly reports: string
  readonly print: (text: string) => void
}

export interface WorldParts {
  readonly session: Session
  readonly scenario: Scenario<never>
  /** The program of a consumer process. */
  readonly program: string
  /** What all consumers of the run have in common. */
  readonly common: Omit<FleetOptions, 'folder' | 'run' | 'queues'>
  send(parts: Sending): Promise<void>
  /** Something small that the server is asked again and again, to see when it stands still. */
  readonly beat?: () => Promise<unknown>
}

export interface Sending {
  readonly queue: string
  readonly messages: readonly PlannedMessage[]
  readonly ratePerSecond: number
  readonly history: HistoryWriter
}

/** 1,000 a second, where the rate is not the point. */
const SEND_RATE = 1_000

export function worldOf(parts: WorldParts): World {
  const { scenario, session } = parts
  const run = `faults-${scenario.name}-${randomBytes(4).toString('hex')}`
  const folder = join(session.reports, run)
  const history = openHistory(folder, 'harness')
  const expected: Record<End, number> = { effect: 0, dlq: 0, quarantine: 0, delay: 0 }
  const producer = counting(openHistory(folder, 'producer'), expected)
  const fleets: Fleet[] = []
  const undos: (() => Promise<unknown>)[] = []
  const nextName = counter('consumer')
  const messages = session.messages ?? atScale(scenario.messages, session.scale)
  const say = (text: string) => session.print(`  ${scenario.name}: ${text}`)
  const endWatch = watchStandstills(
    (span) => history.write({ what: 'stood_still', ...span }),
    parts.beat,
  )

  const send: World['send'] = (queue, planned, ratePerSecond = SEND_RATE) =>
    parts.send({ queue, messages: planned, ratePerSecond, history: producer })

  return {
    run,
    scale: session.scale,
    stopAtFirst: session.stopAtFirst,
    folder,
    history,
    expected,
    fleets,
    messages,
    fleet(options = {}) {
      const all = { folder, run, queues: [run], ...parts.common, ...options }
      const fleet = fleetOf(all, { program: parts.program, history, nextName })
      fleets.push(fleet)
      return fleet
    },
    produce({ ratePerSecond, mix = USUAL_MIX, messages: count = messages, part = '' }) {
      return send(run, plan(`${run}${part}`, count, mix), ratePerSecond)
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
      endWatch()
    },
  }
}

function counter(prefix: string): () => string {
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count}`
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
