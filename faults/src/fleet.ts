import { type ChildProcess, fork } from 'node:child_process'
import type { Answer, ConsumerOptions, Request } from './consumer-options.ts'
import type { HistoryWriter } from './history.ts'
import { becomesTrue, until } from './wait.ts'

/** A consumer process. */
export interface Member {
  readonly name: string
  readonly isReady: boolean
  readonly isAlive: boolean
  /** Deliveries it may have in hand. */
  readonly inFlight: number
  signal(signal: NodeJS.Signals): void
  /** Resolves when it is gone. */
  readonly gone: Promise<void>
  /** Asks it to finish what it has and end. */
  stop(): Promise<void>
  /** Attempts that run or wait in it; undefined when it does not answer. */
  busy(): Promise<number | undefined>
}

/** What all consumers of a scenario have in common. */
export type FleetOptions<Options extends ConsumerOptions = ConsumerOptions> = Omit<Options, 'name'>

export interface Fleet<Options extends ConsumerOptions = ConsumerOptions> {
  /** Starts one more; what is given replaces what the fleet has in common. */
  start(special?: Partial<FleetOptions<Options>>): Member
  /** Those that live. */
  members(): readonly Member[]
  /** From now on, one that dies is replaced. */
  supervise(): void
  readonly isSupervised: boolean
  /** No busy member: nobody has a message in hand. */
  isIdle(): Promise<boolean>
  stop(): Promise<void>
}

/** 20 s to stop: twice what a consumer gives its handlers. */
const STOP_MS = 20_000
/** 60 s to start: twice what making topics may take, and six that start together share two cores. */
const READY_MS = 60_000
/** 50: the default of `concurrency`. */
const DEFAULT_IN_FLIGHT = 50

export interface FleetParts {
  /** The program of a consumer process. */
  readonly program: string
  readonly history: HistoryWriter
  readonly nextName: () => string
}

/** Whatever else the options hold is passed on to the processes as it is. */
export function fleetOf(options: FleetOptions, { program, history, nextName }: FleetParts): Fleet {
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

/** So many are ready; one that cannot start is not. */
export async function ready(
  fleet: Pick<Fleet, 'members' | 'isSupervised'>,
  count: number,
): Promise<void> {
  const isReady = () => {
    const members = fleet.members()
    // Nobody takes the place of one that has ended.
    if (members.length < count && !fleet.isSupervised) {
      throw new Error(`only ${members.length} of ${count} consumers are left before all are ready`)
    }
    return members.filter((member) => member.isReady).length >= count
  }
  await until(`${count} consumers are ready`, isReady, { withinMs: READY_MS })
}

function spawn(program: string, options: ConsumerOptions, history: HistoryWriter): Member {
  const { name, policy } = options
  const inFlight = (policy.concurrency ?? DEFAULT_IN_FLIGHT) * options.queues.length
  const child = fork(program, [JSON.stringify(options)], {
    execArgv: ['--conditions=@redrive/source'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  history.write({ what: 'spawned', process: name, inFlight })
  let isReady = false
  let isStopping = false
  let busy: number | undefined
  child.on('message', (answer: Answer) => {
    if (answer.kind === 'ready') isReady = true
    else busy = answer.busy
  })
  // A message to a process that has just died is no news.
  child.on('error', () => undefined)
  const gone = new Promise<void>((resolve) => {
    child.once('exit', (code) => {
      history.write({
        what: 'exited',
        process: name,
        isCrash: !(isStopping && code === 0),
        isByItself: isReady && code !== null && code !== 0,
        inFlight,
      })
      resolve()
    })
  })
  const isAlive = () => child.exitCode === null && child.signalCode === null
  const signal = (signal: NodeJS.Signals) => {
    if (signal === 'SIGKILL') history.write({ what: 'killed', process: name })
    child.kill(signal)
  }
  return {
    name,
    inFlight,
    gone,
    get isReady() {
      return isReady
    },
    get isAlive() {
      return isAlive()
    },
    signal,
    async stop() {
      isStopping = true
      ask(child, 'stop')
      if (await becomesTrue(() => !isAlive(), { withinMs: STOP_MS, everyMs: 50 })) return
      history.write({ what: 'note', text: `${name} did not stop by itself` })
      signal('SIGKILL')
      await gone
    },
    async busy() {
      busy = undefined
      ask(child, 'stats')
      await becomesTrue(() => busy !== undefined, { withinMs: 2_000, everyMs: 20 })
      return busy
    },
  }
}

function ask(child: ChildProcess, request: Request): void {
  if (child.connected) child.send(request)
}
