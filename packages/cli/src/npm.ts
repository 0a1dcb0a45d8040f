import { spawn } from 'node:child_process'
import { basename } from 'node:path'
import type { Environment } from './io.ts'

export interface NpmOptions {
  readonly cwd: string
  readonly env: Environment
  readonly signal: AbortSignal
}

/** No scripts of packages run. */
const QUIETLY = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']

/** Runs npm, which uses the registry and the proxy of the user. Returns its output if it failed. */
export async function runNpm(
  args: readonly string[],
  { cwd, env, signal }: NpmOptions,
): Promise<string | undefined> {
  const { npm_execpath: path = '' } = env as Readonly<Record<string, string | undefined>>
  const all = [...args, ...QUIETLY]
  // Under npx, the path of npm is known. Otherwise it is a command, on Windows a script that needs a shell.
  const child =
    basename(path) === 'npm-cli.js'
      ? spawn(process.execPath, [path, ...all], { cwd, env, signal })
      : spawn('npm', all, { cwd, env, signal, shell: process.platform === 'win32' })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
  const failure = await new Promise<string | undefined>((resolve) => {
    child.on('error', ({ message }) => resolve(message))
    child.on('close', (code) => resolve(code === 0 ? undefined : output.trim()))
  })
  if (failure !== undefined) signal.throwIfAborted()
  return failure
}
