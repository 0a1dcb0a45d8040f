import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type Client, createClient } from '@redrive/api'
import { ROOT } from '../services.ts'
import { until } from '../wait.ts'

/** A process of the server, started as people start it. */
export interface Replica {
  readonly name: string
  readonly url: string
  readonly client: Client
  /** Resolves when it is dead. */
  kill(): Promise<void>
  /** As the orchestrator does it: resolves with its exit code. */
  terminate(): Promise<number | null>
  /** The same again, after it died. */
  restart(): Promise<void>
  /** Bytes of memory in use, as Linux counts them. */
  readonly pid: number
}

export interface ReplicaOptions {
  readonly name: string
  /** `api`, `ingest`, `replay`, `watch`, with commas between. */
  readonly roles: string
  readonly folder: string
  /** What `redrive.config.json` says, without `listen`. */
  readonly config: Readonly<Record<string, unknown>>
  /** What the server is run from. Default: this repository. */
  readonly root?: string
  /** Variables on top of those of the harness. */
  readonly env?: Readonly<Record<string, string>>
}

/** 60 s to start: seconds on a busy machine, when five of them start at once. */
const START_MS = 60_000

/** Resolves when it says that it is ready. */
export async function startReplica(options: ReplicaOptions): Promise<Replica> {
  const { name, folder, config } = options
  const listen = `127.0.0.1:${await freePort()}`
  const path = join(folder, `${name}.json`)
  const url = `http://${listen}`
  writeFileSync(path, JSON.stringify({ publicUrl: url, ...config, listen }))
  let running = run(options, path)
  await isReady(name, url, running)
  return {
    name,
    url,
    client: createClient({ url }),
    get pid() {
      return running.child.pid ?? 0
    },
    async kill() {
      running.child.kill('SIGKILL')
      await running.gone
    },
    async terminate() {
      running.child.kill('SIGTERM')
      return running.gone
    },
    async restart() {
      running = run(options, path)
      await isReady(name, url, running)
    },
  }
}

interface Running {
  readonly child: ChildProcess
  readonly gone: Promise<number | null>
}

/** Nobody would stop them when the harness is gone. */
const alive = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL')
})

function run(options: ReplicaOptions, config: string): Running {
  const { name, roles, folder, root = ROOT } = options
  const log = openSync(join(folder, `${name}.log`), 'a')
  const program = join(root, 'packages/cli/src/main.ts')
  const args = [
    '--conditions=@redrive/source',
    program,
    'serve',
    '--role',
    roles,
    '--config',
    config,
  ]
  const env = { ...process.env, ...options.env }
  const child = spawn(process.execPath, args, { stdio: ['ignore', log, log], cwd: folder, env })
  alive.add(child)
  const gone = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      alive.delete(child)
      resolve(code)
    })
  })
  return { child, gone }
}

async function isReady(name: string, url: string, { child }: Running): Promise<void> {
  const answers = async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended before it was ready; see its log`)
    // Not there yet: the connection is refused.
    return fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  }
  await until(`${name} is ready`, answers, { withinMs: START_MS })
}

/** One that is free now: nobody else on this machine starts servers meanwhile. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
