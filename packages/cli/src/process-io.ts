import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WriteStream } from 'node:tty'
import type { Environment, Io, Output } from './io.ts'

/** 100 columns when the width is unknown. This fits into a log and an email. */
const COLUMNS = 100

const env: Environment = process.env

/** Returns the environment of the current process. */
export function processIo(signal: AbortSignal, outliveReader: () => void): Io {
  return {
    stdout: outputOf(process.stdout),
    stderr: outputOf(process.stderr),
    stdin: {
      isTTY: process.stdin.isTTY === true,
      lines: () =>
        createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY, signal }),
    },
    env,
    cwd: process.cwd(),
    now: Date.now,
    sleep: async (ms, until) => {
      const ends = until === undefined ? signal : AbortSignal.any([signal, until])
      // An abort ends the sleep early. The caller checks the signal afterwards.
      await sleep(ms, undefined, { signal: ends }).catch(() => undefined)
    },
    fetch: globalThis.fetch,
    signal,
    outliveReader,
    confirm: (question) => confirm(question, signal),
    edit: (path) => edit(path, env.VISUAL || env.EDITOR || 'vi'),
  }
}

function outputOf(stream: WriteStream | (NodeJS.WriteStream & { readonly fd: 1 | 2 })): Output {
  return {
    write: (text) => void stream.write(text),
    isTTY: stream.isTTY === true,
    get columns() {
      return stream.columns || Number(env.COLUMNS) || COLUMNS
    },
    hasColor: hasColor(stream.isTTY === true),
  }
}

/** Follows https://no-color.org and https://force-color.org. The flag has priority over both. */
function hasColor(isTTY: boolean): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = env
  if (process.argv.includes('--no-color') || NO_COLOR) return false
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '') return FORCE_COLOR !== '0'
  return isTTY && TERM !== 'dumb'
}

/** An abort ends the prompt, which otherwise keeps the process running. */
async function confirm(question: string, signal: AbortSignal): Promise<boolean | undefined> {
  const { confirm: ask, isCancel } = await import('@clack/prompts')
  const output = process.stderr
  const answer = await ask({ message: question, initialValue: false, output, signal })
  return isCancel(answer) ? undefined : answer
}

/** Runs the editor, which may be a command with arguments. The shell never parses the path. */
function edit(path: string, editor: string): Promise<number> {
  const isWindows = process.platform === 'win32'
  const child = isWindows
    ? spawn(editor, [path], { stdio: 'inherit', shell: true })
    : spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', path], { stdio: 'inherit' })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => resolve(code ?? 1))
  })
}
