import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from '../services.ts'
import { until } from '../wait.ts'
import type { CatalogConsumerOptions, Told, WorkerOptions } from './options.ts'

/** A process of ours, from the outside. */
export interface Child {
  /** The signal that ended it, or undefined. */
  readonly gone: Promise<NodeJS.Signals | undefined>
  readonly isAlive: boolean
  /** What it said so far. */
  readonly told: readonly Told[]
  /** Resolves when it said something of that kind. */
  heard<K extends Told['kind']>(kind: K): Promise<Extract<Told, { readonly kind: K }>>
  go(): void
  signal(signal: NodeJS.Signals): void
  /** Resolves when it stands still. */
  stopped(): Promise<void>
}

const WORKER = fileURLToPath(new URL('./worker.ts', import.meta.url))
const CONSUMER = fileURLToPath(new URL('./consumer.ts', import.meta.url))

/** 30 s: seconds on a busy machine, and a group of Kafka that waits for its dead. */
const PATIENCE_MS = 30_000

export const startWorker = (options: WorkerOptions): Child => start(WORKER, options)
export const startConsumer = (options: CatalogConsumerOptions): Child => start(CONSUMER, options)

/** One that stands still would stay for ever when we are gone. */
const alive = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL')
})

function start(program: string, options: object): Child {
  const child = fork(program, [JSON.stringify(options)], {
    execArgv: ['--conditions=@redrive/source'],
    // Hundreds of them start: what one has read and compiled, the next need not.
    env: { ...process.env, NODE_COMPILE_CACHE: join(ROOT, '.reports/faults/compiled') },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  alive.add(child)
  const told: Told[] = []
  child.on('message', (one: Told) => void told.push(one))
  // A message to a process that has just died is no news.
  child.on('error', () => undefined)
  const gone = new Promise<NodeJS.Signals | undefined>((resolve) => {
    child.once('exit', (_, signal) => {
      alive.delete(child)
      resolve(signal ?? undefined)
    })
  })
  const isAlive = () => child.exitCode === null && child.signalCode === null
  return {
    gone,
    told,
    get isAlive() {
      return isAlive()
    },
    async heard<K extends Told['kind']>(kind: K) {
      type One = Extract<Told, { readonly kind: K }>
      const find = () => told.find((one): one is One => one.kind === kind)
      const isOver = () => find() !== undefined || !isAlive()
      await until(`a process says ${kind}`, isOver, { withinMs: PATIENCE_MS, everyMs: 5 })
      const found = find()
      if (found === undefined) throw new Error(`a process ended before it said ${kind}`)
      return found
    },
    go: () => void (child.connected && child.send('go')),
    signal: (signal) => void child.kill(signal),
    stopped: () =>
      until('a process stands still', () => stateOf(child.pid) === 'T', {
        withinMs: PATIENCE_MS,
        everyMs: 5,
      }),
  }
}

/** One letter, as the system tells it behind the name in brackets. */
function stateOf(pid: number | undefined): string | undefined {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0]
}
