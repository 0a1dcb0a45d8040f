import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Wide enough for the tables, and about half a laptop screen. */
const [COLUMNS, ROWS] = [110, 40]
/** More lines than a whole test prints. */
const HISTORY = 10_000
/** 60 s for steps that take seconds on an idle machine. */
const DEADLINE_MS = 60_000
/** Frequent enough to see progress, rare enough not to load the machine. */
const POLL_MS = 50
/** A prompt. The digits before the dollar are the exit code of a failed command. */
const PROMPT = /^\d*\$ ?/
const EMPTY_PROMPT = /^\d*\$$/

export interface Terminal {
  /** Types a command, waits for the next prompt, and returns the output of the command. */
  readonly type: (command: string) => Promise<string>
  /** Types a command that does not end, and waits until the window shows `text`. */
  readonly begin: (command: string, text: string) => Promise<void>
  /** Types a command that prompts, waits for the question, and presses one key as the answer. */
  readonly answer: (command: string, question: string, key: string) => Promise<string>
  /** Presses Ctrl-C and waits for the next prompt. */
  readonly interrupt: () => Promise<void>
  /** Returns the whole text of the window with its history. Wrapped lines are joined. */
  readonly text: () => Promise<string>
  /** Returns the same text with the escape sequences for colours. */
  readonly coloured: () => Promise<string>
  /** Returns every byte that the programs sent to the terminal, including redrawn lines. */
  readonly bytes: () => string
}

export interface Terminals {
  readonly open: (name: string, env?: Readonly<Record<string, string>>) => Promise<Terminal>
  readonly close: () => Promise<void>
}

/** Starts a separate tmux server, so that sessions and settings of the user have no effect. */
export function terminals(folder: string, env: Readonly<Record<string, string>>): Terminals {
  const socket = `redrive-${randomUUID().slice(0, 8)}`
  const tmux = async (...args: readonly string[]) => {
    const { stdout } = await run('tmux', ['-L', socket, '-f', '/dev/null', ...args], {
      env: { ...env, TERM: 'xterm-256color' },
      maxBuffer: 64 * 1_024 * 1_024,
    })
    return stdout
  }
  let isStarted = false
  return {
    async open(name, more = {}) {
      const size = ['-x', String(COLUMNS), '-y', String(ROWS)]
      const settings = Object.entries({ ...more, PS1: PS1 }).flatMap(([key, value]) => [
        '-e',
        `${key}=${value}`,
      ])
      const shell = ['bash', '--norc', '--noprofile']
      if (!isStarted)
        await tmux(
          'start-server',
          ';',
          'set',
          '-g',
          'history-limit',
          `${HISTORY}`,
          ';',
          'new-session',
          '-d',
          '-s',
          'idle',
          'cat',
        )
      isStarted = true
      await tmux('new-session', '-d', '-s', name, ...size, '-c', folder, ...settings, ...shell)
      const log = join(folder, `${name}.bytes`)
      await tmux('pipe-pane', '-t', name, `cat > ${log}`)
      const terminal = terminalOf(tmux, name, log)
      await promptIn(terminal, name, 1)
      return terminal
    },
    close: async () => void (isStarted && (await tmux('kill-server'))),
  }
}

/** A common prompt: it starts with the exit code if that is not 0. */
const PS1 = '${?#0}$ '

function terminalOf(
  tmux: (...args: readonly string[]) => Promise<string>,
  name: string,
  log: string,
): Terminal {
  const keys = async (...typed: readonly string[]) =>
    void (await tmux('send-keys', '-t', name, ...typed))
  const capture = async (...flags: readonly string[]) =>
    (await tmux('capture-pane', '-p', '-J', '-S', '-', '-t', name, ...flags)).trimEnd()
  const outputAfter = async (before: string, command: string) => {
    const after = await promptIn(terminal, command, promptsOf(before) + 1)
    return after.split('\n').slice(before.split('\n').length, -1).join('\n')
  }
  const terminal: Terminal = {
    async type(command) {
      const before = await terminal.text()
      await keys('-l', command)
      await keys('Enter')
      return outputAfter(before, command)
    },
    async answer(command, question, key) {
      const before = await terminal.text()
      await terminal.begin(command, question)
      await keys(key)
      return outputAfter(before, command)
    },
    async begin(command, expected) {
      const before = await terminal.text()
      await keys('-l', command)
      await keys('Enter')
      // Only new text counts, because the window may already contain the same text.
      const isShown = (text: string) => text.slice(before.length).includes(expected)
      await waitFor(terminal, `${command} to print ${expected}`, isShown)
    },
    async interrupt() {
      const before = await terminal.text()
      await keys('C-c')
      await promptIn(terminal, 'Ctrl-C', promptsOf(before) + 1)
    },
    // Joined lines keep the spaces that filled the line.
    text: async () => (await capture()).replace(/ +$/gm, ''),
    coloured: () => capture('-e'),
    bytes: () => readFileSync(log, 'utf8'),
  }
  return terminal
}

const promptsOf = (text: string): number =>
  text.split('\n').filter((line) => PROMPT.test(line)).length

const promptIn = (terminal: Terminal, command: string, count: number): Promise<string> =>
  waitFor(
    terminal,
    `the prompt after ${command}`,
    (text) => promptsOf(text) >= count && EMPTY_PROMPT.test(text.split('\n').at(-1) ?? ''),
  )

/** Polls the screen until it matches. The error contains the screen. */
async function waitFor(
  terminal: Terminal,
  expectation: string,
  isShown: (text: string) => boolean,
): Promise<string> {
  const endsAt = performance.now() + DEADLINE_MS
  for (;;) {
    const text = await terminal.text()
    if (isShown(text)) return text
    if (performance.now() > endsAt) {
      throw new Error(
        `Expected within ${DEADLINE_MS} ms: ${expectation}. The terminal shows:\n${text}`,
      )
    }
    await pause(POLL_MS)
  }
}
