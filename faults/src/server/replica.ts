import { spawn } from 'node:child_process'
import { openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Client, createClient } from '@redrive/api'
import { freePort } from '../harness/listening.ts'
import { type Child, followed } from '../harness/process.ts'
import { ROOT } from '../harness/services.ts'
import { until } from '../harness/wait.ts'

/** A process of the server, started as users start it. */
export interface Replica {
  readonly name: string
  readonly url: string
  readonly client: Client
  /** Resolves when it is dead. */
  kill(): Promise<void>
  /** Starts it again after its death. */
  restart(): Promise<void>
  /** Process id, used to read its memory from Linux. */
  readonly pid: number
}

export interface ReplicaOptions {
  readonly name: string
  /** Roles with commas between: `api`, `ingest`, `replay`, `watch`. */
  readonly roles: string
  readonly folder: string
  /** Content of `redrive.config.json` without `listen`. */
  readonly config: Readonly<Record<string, unknown>>
  /** Folder from which the server runs. Default: this repository. */
  readonly root?: string
  /** Environment variables in addition to those of the harness. */
  readonly env?: Readonly<Record<string, string>>
}

/** 60 s: a start takes seconds on a busy machine when five of them start concurrently. */
const START_MS = 60_000

/** Resolves when the server reports that it is ready. */
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
      return running.pid
    },
    kill: () => running.kill(),
    async restart() {
      running = run(options, path)
      await isReady(name, url, running)
    },
  }
}

function run(options: ReplicaOptions, config: string): Child {
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
  return followed(child, name)
}

async function isReady(name: string, url: string, child: Child): Promise<void> {
  const answers = async () => {
    if (!child.isAlive) throw new Error(`${name} ended before it was ready; see its log`)
    // Not listening yet: the connection is refused.
    return fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  }
  await until(`${name} is ready`, answers, { withinMs: START_MS })
}
