import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Happenings } from './happenings.ts'

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))

/** The service in a separate process, as in production. */
export class Service {
  /** Lines of its log. */
  readonly lines = new Happenings<string>()
  readonly #child: ChildProcess

  constructor(env: Readonly<Record<string, string>>, onLine: (line: string) => void) {
    this.#child = spawn(process.execPath, [...process.execArgv, MAIN], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (this.#child.stdout === null) throw new Error('The service has no output.')
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      onLine(line)
      this.lines.add(line)
    })
    this.#child.once('close', () => this.lines.end(new Error('The service has ended.')))
  }

  /** Waits for a line of its log, the first that matches or a later one. */
  waitForLog(pattern: RegExp, times = 1): Promise<string> {
    const what = `the service logs ${pattern.source} ${times > 1 ? `${times} times` : ''}`
    return this.lines.one(what.trim(), (line) => pattern.test(line), times)
  }

  /** Requests it to stop, as an orchestrator does; returns its exit code. */
  stop(): Promise<number | null> {
    return this.#end('SIGTERM')
  }

  /** `kill -9`: it cannot log or clean up anything. */
  kill(): Promise<number | null> {
    return this.#end('SIGKILL')
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      // Not `exit`: the last log lines may still be on their way then.
      const closed = once(this.#child, 'close')
      this.#child.kill(signal)
      await closed
    }
    return this.#child.exitCode
  }
}
