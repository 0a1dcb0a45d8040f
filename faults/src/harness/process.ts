import { type ChildProcess, fork, type Serializable } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from './services.ts'
import { until } from './wait.ts'

/** A message from a child process. Every program reports `ready`. */
export interface Message {
  readonly kind: string
}

/** A child process of the harness. */
export interface Child<Told extends Message = Message> {
  readonly pid: number
  readonly isAlive: boolean
  /** Resolves when it has ended, with the signal that ended it or its exit code. */
  readonly gone: Promise<NodeJS.Signals | number>
  /** Messages received from it until now. */
  readonly messages: readonly Told[]
  /** Resolves when it has sent a message of this kind; throws when it ends before. */
  waitFor<K extends Told['kind']>(kind: K): Promise<Extract<Told, { readonly kind: K }>>
  /** Sends a request; its meaning depends on the program. */
  send(request: Serializable): void
  signal(signal: NodeJS.Signals): void
  /** Resolves when it is dead. */
  kill(): Promise<void>
  /** Resolves when it is stopped (SIGSTOP). */
  stopped(): Promise<void>
}

/** 30 s: a start takes seconds on a busy machine, and a Kafka group waits for its dead members. */
const PATIENCE = { withinMs: 30_000, everyMs: 5 }

/** Running processes. A stopped one would stay forever when the harness ends. */
const alive = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL')
})

/** Starts a program that reads its options from its first argument, as JSON. */
export function startChild<Told extends Message = Message>(
  program: URL,
  options: object = {},
): Child<Told> {
  const path = fileURLToPath(program)
  const child = fork(path, [JSON.stringify(options)], {
    execArgv: ['--conditions=@redrive/source'],
    // Hundreds of processes start. They share one compile cache.
    env: { ...process.env, NODE_COMPILE_CACHE: join(ROOT, '.reports/faults/compiled') },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  return followed(child, path.slice(ROOT.length))
}

/** Follows a process that was just started. */
export function followed<Told extends Message>(child: ChildProcess, name: string): Child<Told> {
  const messages: Told[] = []
  alive.add(child)
  child.on('message', (one: Told) => void messages.push(one))
  // Sending to a process that has just died fails; that is expected.
  child.on('error', () => undefined)
  const gone = new Promise<NodeJS.Signals | number>((resolve) => {
    child.once('exit', (code, signal) => {
      alive.delete(child)
      resolve(signal ?? code ?? 0)
    })
  })
  const isAlive = () => child.exitCode === null && child.signalCode === null
  return {
    pid: child.pid ?? 0,
    gone,
    messages,
    get isAlive() {
      return isAlive()
    },
    async waitFor<K extends Told['kind']>(kind: K) {
      type One = Extract<Told, { readonly kind: K }>
      const find = () => messages.find((one): one is One => one.kind === kind)
      await until(`${name} reports ${kind}`, () => find() !== undefined || !isAlive(), PATIENCE)
      const found = find()
      if (found === undefined) throw new Error(`${name} ended before it reported "${kind}".`)
      return found
    },
    send: (request) => void (child.connected && child.send(request)),
    signal: (signal) => void child.kill(signal),
    async kill() {
      child.kill('SIGKILL')
      await gone
    },
    stopped: () => until(`${name} is stopped`, () => stateOf(child.pid) === 'T', PATIENCE),
  }
}

/** Returns the state letter from /proc; it follows the process name in brackets. */
const stateOf = (pid: number | undefined): string | undefined =>
  readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0]

const KIB = 1_024

/** Returns the resident memory of a process in bytes: now and at its maximum. */
export function memoryOf({ pid }: Pick<Child, 'pid'>): {
  readonly now: number
  readonly most: number
} {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const read = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * KIB
  return { now: read('VmRSS'), most: read('VmHWM') }
}

/** Called by a program: reports that it is ready, receives requests, and ends with the harness. */
export function ready(onRequest: (request: string) => void = () => undefined): void {
  process.on('message', (request: string) => onRequest(request))
  process.on('disconnect', () => process.exit(1))
  process.send?.({ kind: 'ready' })
}
