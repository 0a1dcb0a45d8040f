import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dropDatabase, emptyDatabase, freePort } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { ended, start } from './child.ts'
import { type CommandResult, run } from './world.ts'

export interface Group {
  readonly id: string
  readonly source: string
  readonly openCount: number
}

/** A server with its config, and an operator with the command line. */
export interface Desk {
  readonly redrive: (...args: readonly string[]) => Promise<CommandResult>
  readonly json: <T>(...args: readonly string[]) => Promise<T>
  readonly groups: () => Promise<readonly Group[]>
  /** Writes the config and starts the server. */
  readonly serve: (sources: object) => Promise<void>
  /** Replays a group and waits for the end of the run. */
  readonly replay: (group: Group, ...flags: readonly string[]) => Promise<CommandResult>
  /** Adds work to do before the desk is closed, last one first. */
  readonly atEnd: (work: () => unknown) => void
  readonly close: () => Promise<void>
}

/** Creates a desk. The server starts with the variables. */
export async function openDesk(
  name: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<Desk> {
  const folder = mkdtempSync(join(tmpdir(), `redrive-cli-${name}-`))
  const config = join(folder, 'redrive.config.json')
  const port = await freePort()
  const env = { ...variables, REDRIVE_CONFIG: config, REDRIVE_URL: `http://127.0.0.1:${port}` }
  const databaseUrl = await emptyDatabase(`redrive_cli_${name}_${randomUUID().slice(0, 8)}`)
  const ends: (() => unknown)[] = [() => dropDatabase(databaseUrl)]
  const redrive = (...args: readonly string[]) => run(args, { env, isRealTime: true })

  async function json<T>(...args: readonly string[]): Promise<T> {
    const { stdout, stderr, code } = await redrive(...args, '--json')
    if (stdout === '') throw new Error(`exit ${code}: ${stderr}`)
    return JSON.parse(stdout) as T
  }

  async function serve(sources: object): Promise<void> {
    writeFileSync(
      config,
      JSON.stringify({
        database: { url: databaseUrl },
        listen: `127.0.0.1:${port}`,
        auth: { development: { name: 'dev' } },
        approval: 'anyone',
        sources,
        shutdown: { readinessDelay: '0ms' },
        limits: { requestsPerMinute: 100_000 },
      }),
    )
    const { code, stderr } = await redrive('migrate')
    if (code !== 0) throw new Error(stderr)
    const server = start(['serve', '--log-level', 'warn'], env)
    const serving = ended(server)
    ends.push(async () => {
      server.kill('SIGTERM')
      await serving
    })
    await until('the server responds', async () => (await redrive('whoami')).code === 0, {
      timeout: '60s',
    })
  }

  return {
    redrive,
    json,
    serve,
    groups: async () => (await json<{ groups: readonly Group[] }>('groups', 'list')).groups,
    async replay(group, ...flags) {
      const selection = `group:${group.id.slice(0, 12)}`
      const plan = ['replay', 'plan', selection, '--canary', 'none', ...flags]
      const { id } = await json<{ id: string }>(...plan)
      return redrive('replay', 'start', id, '--yes', '--wait')
    },
    atEnd: (work) => void ends.push(work),
    async close() {
      for (const end of ends.reverse()) await end()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
