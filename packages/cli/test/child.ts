import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import type { CommandResult } from './world.ts'

const MAIN = new URL('../src/main.ts', import.meta.url).pathname

/** The compile cache that vitest.config.ts sets. */
const CACHE = { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }

/** Starts the program as a child process. */
export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, ['--conditions=@redrive/source', MAIN, ...args], {
    env: { ...CACHE, PATH: process.env['PATH'], HOME: '/nonexistent', ...env },
  })
}

export async function ended(
  child: ChildProcessWithoutNullStreams,
): Promise<Omit<CommandResult, 'questions'>> {
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const code = await new Promise<number>((resolve) =>
    child.on('close', (exit) => resolve(exit ?? -1)),
  )
  return { code, stdout, stderr }
}

export const runChild = (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ReturnType<typeof ended> => {
  const child = start(args, env)
  child.stdin.end()
  return ended(child)
}
