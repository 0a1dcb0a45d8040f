import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WriteStream } from 'node:tty'
import type { Io, Output } from './io.ts'

/** 100 columns where nobody says: it fits into a log and a mail. */
const COLUMNS = 100

/** The world of a process. */
export function processIo(signal: AbortSignal, outliveReader: () => void): Io {
  const { env } = process
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
      // Woken early is woken as well: who sleeps looks at the signal afterwards.
      await sleep(ms, undefined, { signal: ends }).catch(() => undefined)
    },
    fetch: globalThis.fetch,
    signal,
    outliveReader,
    confirm,
    edit: (path) => edit(path, env['VISUAL'] || env['EDITOR'] || 'vi'),
  }
}

function outputOf(stream: WriteStream | (NodeJS.WriteStream & { readonly fd: 1 | 2 })): Output {
  return {
    write: (text) => void stream.write(text),
    isTTY: stream.isTTY === true,
    get columns() {
      return stream.columns || Number(process.env['COLUMNS']) || COLUMNS
    },
    hasColor: hasColor(stream.isTTY === true),
  }
}

/** https://no-color.org and https://force-color.org; the flag before both. */
function hasColor(isTTY: boolean): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env
  if (process.argv.includes('--no-color') || NO_COLOR) return false
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '') return FORCE_COLOR !== '0'
  return isTTY && TERM !== 'dumb'
}

async function confirm(question: string): Promise<boolean | undefined> {
  const { confirm: ask, isCancel } = await import('@clack/prompts')
  const answer = await ask({ message: question, initialValue: false, output: process.stderr })
  return isCancel(answer) ? undefined : answer
}

/** The editor may be a command with arguments; a path is never part of what a shell reads. */
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
