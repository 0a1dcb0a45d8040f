import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { ROOT } from './services.ts'

/** A program in a separate process. */
export interface RunningProgram {
  /** Returns everything that it has printed, on both outputs. */
  printed(): string
  kill(signal: NodeJS.Signals): void
  /** The exit code; null after a signal. */
  readonly exited: Promise<number | null>
}

/** Runs a JavaScript or TypeScript file of this repository; `file` is relative to its root. Packages are used from their sources. */
export function runProgram(
  file: string,
  env: Readonly<Record<string, string>> = {},
): RunningProgram {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const child: ChildProcessWithoutNullStreams = spawn(
    process.execPath,
    ['--conditions=@redrive/source', file],
    { cwd: ROOT, env: { PATH, NODE_COMPILE_CACHE, ...env } },
  )
  let printed = ''
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', (text: string) => (printed += text))
  }
  const exited = new Promise<number | null>((resolve) => child.on('close', resolve))
  return { printed: () => printed, kill: (signal) => child.kill(signal), exited }
}
