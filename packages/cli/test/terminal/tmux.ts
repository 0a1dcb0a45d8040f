import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Wide enough for the tables, and what half a laptop screen has. */
const [COLUMNS, ROWS] = [110, 40]
/** More than a whole run says. */
const HISTORY = 10_000
/** 60 s for what takes seconds on a quiet machine. */
const DEADLINE_MS = 60_000
/** Quick enough to be called live, slow enough to leave the machine to the others. */
const LOOK_MS = 50
/** An empty prompt; what is before the dollar is the exit code of a command that failed. */
const PROMPT = /^\d*\$ ?/
const EMPTY_PROMPT = /^\d*\$$/

export interface Terminal {
  /** Types a command and waits until the prompt is back. Answers with what came out since, without the prompt. */
  readonly type: (command: string) => Promise<string>
  /** Types a command that does not end, and waits until its window says so. */
  readonly begin: (command: string, says: string) => Promise<void>
  /** The same for a command that asks: answers with one key when the question is there. */
  readonly answer: (command: string, question: string, key: string) => Promise<string>
  /** Ctrl-C, and waits until the prompt is back. */
  readonly interrupt: () => Promise<void>
  /** All there is in the window, history included; a line that the terminal broke is one line. */
  readonly text: () => Promise<string>
  /** The same with the escape sequences for colours. */
  readonly coloured: () => Promise<string>
  /** Every byte that the programs sent to the terminal, redrawn lines too. */
  readonly bytes: () => string
}

export interface Terminals {
  readonly open: (name: string, env?: Readonly<Record<string, string>>) => Promise<Terminal>
  readonly close: () => Promise<void>
}

/** A tmux server of its own, so that nobody's sessions or settings are met. */
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
          'keeper',
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

/** As many people have it: the exit code in front, when it is not 0. */
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
    async begin(command, says) {
      const before = await terminal.text()
      await keys('-l', command)
      await keys('Enter')
      // The same may have been said before.
      const isSaid = (text: string) => text.slice(before.length).includes(says)
      await seen(terminal, `${command} to say ${says}`, isSaid)
    },
    async interrupt() {
      const before = await terminal.text()
      await keys('C-c')
      await promptIn(terminal, 'Ctrl-C', promptsOf(before) + 1)
    },
    // Lines that were joined keep the blanks that filled the line.
    text: async () => (await capture()).replace(/ +$/gm, ''),
    coloured: () => capture('-e'),
    bytes: () => readFileSync(log, 'utf8'),
  }
  return terminal
}

const promptsOf = (text: string): number =>
  text.split('\n').filter((line) => PROMPT.test(line)).length

const promptIn = (terminal: Terminal, command: string, count: number): Promise<string> =>
  seen(
    terminal,
    `the prompt after ${command}`,
    (text) => promptsOf(text) >= count && EMPTY_PROMPT.test(text.split('\n').at(-1) ?? ''),
  )

/** Looks at the screen again until it is as expected; shows it when it never is. */
async function seen(
  terminal: Terminal,
  what: string,
  isThere: (text: string) => boolean,
): Promise<string> {
  const endsAt = performance.now() + DEADLINE_MS
  for (;;) {
    const text = await terminal.text()
    if (isThere(text)) return text
    if (performance.now() > endsAt) {
      throw new Error(`Expected within ${DEADLINE_MS} ms: ${what}. The terminal shows:\n${text}`)
    }
    await pause(LOOK_MS)
  }
}
