import { randomBytes } from 'node:crypto'
import type { ConsumerOptions } from './consumer-options.ts'
import { type Fleet, type FleetOptions, fleetOf } from './fleet.ts'
import { openHistory, type HistoryWriter } from '../evidence/history.ts'
import {
  END_OF,
  type End,
  type Mix,
  plan,
  type PlannedMessage,
  USUAL_MIX,
} from '../evidence/message.ts'
import { atScale, type ByScale, type Scale, type Session } from './scenario.ts'
import { watchStandstills } from '../evidence/stalls.ts'

/** One run of a scenario, for any server: its processes, its messages, its history. */
export interface World<
  Options extends ConsumerOptions = ConsumerOptions,
  Planned extends PlannedMessage = PlannedMessage,
> {
  readonly run: string
  readonly scale: Scale
  /** Whether to stop waiting early, because a mutant may have made the result impossible. */
  readonly stopAtFirst: boolean
  readonly folder: string
  readonly history: HistoryWriter
  readonly messages: number
  /** Creates consumers of the run's queue, or of other queues in the options. */
  fleet(options?: Partial<FleetOptions<Options>>): Fleet<Options>
  /** Sends the messages of a mix; resolves when the server has responded to all of them. */
  produce(load: Load): Promise<void>
  /** Sends exactly these messages to a queue. */
  send(queue: string, messages: readonly Planned[], ratePerSecond?: number): Promise<void>
  /** Records a fault; call the returned function when it has ended. */
  fault(name: string, interrupted?: number): () => void
  /** Records the end of the last fault. The recovery time starts now. */
  heal(): void
  say(text: string): void
  /** Registers a clean-up that always runs after the last consumer has ended. */
  atEnd(undo: () => Promise<unknown>): void
  end(): Promise<void>
  /** Number of acknowledged messages, by where they must end. */
  readonly expected: Readonly<Record<End, number>>
  /** Fleets to stop at the end. */
  readonly fleets: readonly Fleet<Options>[]
}

export interface Load {
  readonly ratePerSecond: number
  readonly mix?: Mix
  readonly messages?: number
  /** Name of a plan, for a scenario that sends several. */
  readonly part?: string
}

export interface WorldDeps {
  readonly session: Session
  readonly scenario: { readonly name: string; readonly messages: ByScale<number> }
  /** The program of a consumer process. */
  readonly program: URL
  /** Options that all consumers of the run share. */
  readonly common: Omit<FleetOptions, 'folder' | 'run' | 'queues'>
  send(parts: Sending): Promise<void>
  /** A small request to the server, repeated all the time to notice stalls. */
  readonly beat?: () => Promise<unknown>
}

export interface Sending {
  readonly queue: string
  readonly messages: readonly PlannedMessage[]
  readonly ratePerSecond: number
  readonly history: HistoryWriter
}

/** 1,000 per second, where the rate does not matter. */
const SEND_RATE = 1_000

export function worldOf(parts: WorldDeps): World {
  const { scenario, session } = parts
  const run = `faults-${scenario.name}-${randomBytes(4).toString('hex')}`
  const { folder, say } = session
  const history = openHistory(folder, 'harness')
  const expected: Record<End, number> = { effect: 0, dlq: 0, quarantine: 0, delay: 0 }
  const producer = counting(openHistory(folder, 'producer'), expected)
  const fleets: Fleet[] = []
  const undos: (() => Promise<unknown>)[] = []
  const nextName = counter('consumer')
  const messages = session.messages ?? atScale(scenario.messages, session.scale)
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
        say(`… ${name} has ended`)
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

/** Counts acknowledged messages by where they must end. */
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
