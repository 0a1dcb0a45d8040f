import { setTimeout } from 'node:timers/promises'
import type { Io } from '../src/io.ts'
import { runProgram } from '../src/program.ts'

/** 2026-01-31T03:04:11Z. */
export const NOW = Date.UTC(2026, 0, 31, 3, 4, 11)

export interface WorldOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly columns?: number
  /** The answer of the user to a prompt. Undefined: there is no terminal. */
  readonly answers?: boolean | undefined
  readonly isTTY?: boolean
  readonly hasColor?: boolean
  /** Replaces the editor. Returns its exit code. */
  readonly edit?: (path: string) => number
  readonly input?: AsyncIterable<string>
  readonly signal?: AbortSignal
  readonly cwd?: string
  /** Uses real time, for tests with other processes. Default: the time is always NOW and sleeps return immediately. */
  readonly isRealTime?: boolean
}

export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** Prompts that were shown. */
  readonly questions: readonly string[]
}

/** Runs a command in a separate test environment. */
export async function run(
  args: readonly string[],
  options: WorldOptions = {},
): Promise<CommandResult> {
  const { columns = 120, isTTY = options.answers !== undefined, hasColor = false } = options
  const written = { stdout: '', stderr: '' }
  const questions: string[] = []
  const output = (name: 'stdout' | 'stderr') => ({
    write: (text: string) => {
      written[name] += text
    },
    isTTY,
    columns,
    hasColor,
  })
  const io: Io = {
    stdout: output('stdout'),
    stderr: output('stderr'),
    stdin: { isTTY, lines: () => options.input ?? nothing() },
    env: options.env ?? {},
    cwd: options.cwd ?? '/',
    now: options.isRealTime ? Date.now : () => NOW,
    sleep: async (ms) => {
      if (options.isRealTime) await setTimeout(ms)
    },
    fetch: globalThis.fetch,
    signal: options.signal ?? new AbortController().signal,
    outliveReader: () => undefined,
    confirm: async (question) => {
      questions.push(question)
      return options.answers
    },
    edit: async (path) => options.edit?.(path) ?? 0,
  }
  const code = await runProgram(io, args)
  return { code, ...written, questions }
}

async function* nothing(): AsyncGenerator<string> {}
