import type { Answer, ConsumerOptions, Request } from './consumer-options.ts'
import type { HistoryWriter } from '../evidence/history.ts'
import { startChild } from './process.ts'
import { becomesTrue, until } from './wait.ts'

/** A consumer process. */
export interface Member {
  readonly name: string
  readonly isReady: boolean
  readonly isAlive: boolean
  /** Maximum number of deliveries in flight. */
  readonly inFlight: number
  signal(signal: NodeJS.Signals): void
  /** Resolves when the process has ended. */
  readonly gone: Promise<void>
  /** Requests it to finish its work and end. */
  stop(): Promise<void>
  /** Number of attempts that run or wait in it; undefined when it does not respond. */
  busy(): Promise<number | undefined>
}

/** Options that all consumers of a scenario share. */
export type FleetOptions<Options extends ConsumerOptions = ConsumerOptions> = Omit<Options, 'name'>

export interface Fleet<Options extends ConsumerOptions = ConsumerOptions> {
  /** Starts one more consumer; `special` replaces the shared options. */
  start(special?: Partial<FleetOptions<Options>>): Member
  /** Running members. */
  members(): readonly Member[]
  /** Replaces members that die from now on. */
  supervise(): void
  readonly isSupervised: boolean
  /** Whether no member has a message in flight. */
  isIdle(): Promise<boolean>
  stop(): Promise<void>
}

/** 20 s to stop: twice the time a consumer gives its handlers. */
const STOP_MS = 20_000
/**
 * 60 s to start: twice the time that creating topics may take. Six processes that start together
 * share two cores.
 */
const READY_MS = 60_000
/** 50 is the default of `concurrency`. */
const DEFAULT_IN_FLIGHT = 50

export interface FleetDeps {
  /** The program of a consumer process. */
  readonly program: URL
  readonly history: HistoryWriter
  readonly nextName: () => string
}

/** Creates a fleet. All other options are passed to the processes unchanged. */
export function fleetOf(options: FleetOptions, { program, history, nextName }: FleetDeps): Fleet {
  const members = new Set<Member>()
  let isSupervised = false

  const start = (special: Partial<FleetOptions> = {}): Member => {
    const member = spawn(program, { ...options, ...special, name: nextName() }, history)
    members.add(member)
    void member.gone.then(() => {
      members.delete(member)
      if (isSupervised) start(special)
    })
    return member
  }

  return {
    start,
    members: () => [...members],
    supervise() {
      isSupervised = true
    },
    get isSupervised() {
      return isSupervised
    },
    async isIdle() {
      const busy = await Promise.all([...members].map((member) => member.busy()))
      return busy.every((count) => count === 0)
    },
    async stop() {
      isSupervised = false
      await Promise.all([...members].map((member) => member.stop()))
    },
  }
}

/** Resolves when `count` members are ready; throws when a member cannot start. */
export async function ready(
  fleet: Pick<Fleet, 'members' | 'isSupervised'>,
  count: number,
): Promise<void> {
  const isReady = () => {
    const members = fleet.members()
    // A member that has ended is not replaced.
    if (members.length < count && !fleet.isSupervised) {
      throw new Error(
        `Only ${members.length} of ${count} consumers are left. The others ended before all were ready.`,
      )
    }
    return members.filter((member) => member.isReady).length >= count
  }
  await until(`${count} consumers are ready`, isReady, { withinMs: READY_MS })
}

function spawn(program: URL, options: ConsumerOptions, history: HistoryWriter): Member {
  const { name, policy } = options
  const inFlight = (policy.concurrency ?? DEFAULT_IN_FLIGHT) * options.queues.length
  const child = startChild<Answer>(program, options)
  history.write({ what: 'spawned', process: name, inFlight })
  let isStopping = false
  const isReady = () => child.messages.some(({ kind }) => kind === 'ready')
  const gone = child.gone.then((end) => {
    history.write({
      what: 'exited',
      process: name,
      isCrash: !(isStopping && end === 0),
      isByItself: isReady() && typeof end === 'number' && end !== 0,
      inFlight,
    })
  })
  const signal = (signal: NodeJS.Signals) => {
    if (signal === 'SIGKILL') history.write({ what: 'killed', process: name })
    child.signal(signal)
  }
  return {
    name,
    inFlight,
    gone,
    get isReady() {
      return isReady()
    },
    get isAlive() {
      return child.isAlive
    },
    signal,
    async stop() {
      isStopping = true
      child.send('stop' satisfies Request)
      if (await becomesTrue(() => !child.isAlive, { withinMs: STOP_MS, everyMs: 50 })) return
      history.write({ what: 'note', text: `${name} did not stop when requested` })
      signal('SIGKILL')
      await gone
    },
    async busy() {
      const known = child.messages.length
      child.send('stats' satisfies Request)
      const find = () => child.messages.slice(known).find(({ kind }) => kind === 'stats')
      await becomesTrue(() => find() !== undefined, { withinMs: 2_000, everyMs: 20 })
      const answer = find()
      return answer?.kind === 'stats' ? answer.busy : undefined
    },
  }
}
