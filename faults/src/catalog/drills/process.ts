import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { until } from '../../wait.ts'

/** A process of ours, from the outside. */
export interface Process {
  /** The signal that ended it, or undefined. */
  readonly gone: Promise<NodeJS.Signals | undefined>
  /** Tells it something; what that means is up to the program. */
  tell(word: string): void
  /** Bytes of memory it has in use, and the most it ever had. */
  memory(): { readonly now: number; readonly most: number }
  /** Resolves when it is dead. */
  kill(): Promise<void>
}

/** 30 s to start: seconds on a busy machine. */
const START_MS = 30_000

/** Resolves when the program says that it is ready. */
export async function startProcess(program: string, options: object): Promise<Process> {
  const path = fileURLToPath(new URL(program, import.meta.url))
  const child = fork(path, [JSON.stringify(options)], {
    execArgv: ['--conditions=@redrive/source'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  let isReady = false
  let isGone = false
  child.once('message', () => {
    isReady = true
  })
  const gone = new Promise<NodeJS.Signals | undefined>((resolve) => {
    child.once('exit', (_, signal) => {
      isGone = true
      resolve(signal ?? undefined)
    })
  })
  await until(`${program} is ready`, () => isReady || isGone, { withinMs: START_MS, everyMs: 10 })
  if (!isReady) throw new Error(`${program} ended before it was ready`)
  return {
    gone,
    tell: (word) => void (child.connected && child.send(word)),
    memory: () => memoryOf(child.pid),
    async kill() {
      child.kill('SIGKILL')
      await gone
    },
  }
}

const KIB = 1_024

/** As Linux counts it: resident, now and at its highest. */
function memoryOf(pid: number | undefined) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const read = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * KIB
  return { now: read('VmRSS'), most: read('VmHWM') }
}

/** For the programs: says that they are ready, listens, and ends with the harness. */
export function ready(onTold: (word: string) => void = () => undefined): void {
  process.on('message', (word: string) => onTold(word))
  process.on('disconnect', () => process.exit(1))
  process.send?.('ready')
}
