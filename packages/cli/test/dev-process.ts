import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Client, createClient } from '@redrive/api'
import type { Io } from '../src/io.ts'

const MAIN = new URL('../src/main.ts', import.meta.url).pathname

export interface DevStart {
  readonly cwd: string
  readonly args: readonly string[]
  /** The user of the process. Default: that of the tests. */
  readonly user?: { readonly uid: number; readonly gid: number }
  readonly env?: Readonly<Record<string, string>>
}

/** A started `redrive dev`. */
export interface DevProcess {
  readonly child: ChildProcessWithoutNullStreams
  /** Resolves when the command is ready. Rejects with its output when it ends before. */
  readonly ready: Promise<{ readonly url: string; readonly folder: string }>
  /** Resolves with the exit code and the messages. */
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>
}

/** Starts `redrive dev` as a child process in a separate group, as a terminal does. */
export function startDev({ cwd, args, user, env = {} }: DevStart): DevProcess {
  const child = spawn(
    process.execPath,
    ['--conditions=@redrive/source', MAIN, 'dev', '--json', '--no-open', ...args],
    { ...user, cwd, detached: true, env: { PATH: process.env['PATH'], HOME: cwd, ...env } },
  )
  let [stdout, stderr] = ['', '']
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stderr }))
  const ready = new Promise<{ url: string; folder: string }>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      if (stdout.endsWith('}\n')) resolve(JSON.parse(stdout) as { url: string; folder: string })
    })
    child.on('close', (code) => reject(new Error(`redrive dev ended with ${code}: ${stderr}`)))
  })
  // A test of an error waits only for the end.
  ready.catch(() => undefined)
  return { child, ready, ended }
}

/** Sends a signal to the whole group, as Ctrl-C in a terminal does. */
export const signalGroup = ({ child }: DevProcess, signal: NodeJS.Signals): boolean =>
  process.kill(-(child.pid ?? Number.NaN), signal)

/** Returns the ids of PostgreSQL in a folder and of all its processes. */
export function postgresPids(folder: string): readonly number[] {
  const [first = ''] = readFileSync(join(folder, 'postgres', 'postmaster.pid'), 'utf8').split('\n')
  const children = readFileSync(`/proc/${first}/task/${first}/children`, 'utf8')
  return [first, ...children.trim().split(' ')].map(Number)
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export const clientOf = (url: string): Client => createClient({ url })

/** Returns the open dead letters by failure class. */
export async function openByClass(client: Client): Promise<Readonly<Record<string, number>>> {
  const { groups } = await client.call('listGroups', { query: {} })
  return Object.fromEntries(groups.map((group) => [group.class, group.openCount]))
}

/** A terminal whose user gives the same answer to each question. */
export function terminalAt(url: string, answer: boolean | undefined) {
  const out = { text: '', questions: [] as string[] }
  const output = {
    write: (text: string) => void (out.text += text),
    isTTY: true,
    columns: 120,
    hasColor: false,
  }
  const io: Io = {
    stdout: output,
    stderr: output,
    stdin: { isTTY: true, lines: () => nothing() },
    env: { REDRIVE_URL: url },
    cwd: '/',
    now: Date.now,
    sleep: async (ms) => setTimeout(ms),
    fetch: globalThis.fetch,
    signal: new AbortController().signal,
    outliveReader: () => undefined,
    confirm: async (question) => {
      out.questions.push(question)
      return answer
    },
    edit: async () => 0,
  }
  return { io, out }
}

async function* nothing(): AsyncGenerator<string> {}
