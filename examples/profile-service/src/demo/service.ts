import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { until } from '@redrive/testing'
import type { Health } from '../health.ts'

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))

/** The service in a separate process, as in production. */
export class Service {
  readonly #child: ChildProcess
  readonly #lines: string[] = []
  #url = ''

  constructor(env: Readonly<Record<string, string>>, onLine: (line: string) => void) {
    this.#child = spawn(process.execPath, [...process.execArgv, MAIN], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (this.#child.stdout === null) throw new Error('The service has no output.')
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.#lines.push(line)
      onLine(line)
    })
  }

  /** Resolves when it consumes and its health endpoint responds. */
  async ready(): Promise<void> {
    const port = await until('the service has started', () => {
      this.#mustRun()
      return this.#lines.map((line) => /event=started .*port=(\d+)/.exec(line)?.[1]).find(Boolean)
    })
    this.#url = `http://127.0.0.1:${port}/healthz/consumer`
  }

  /** Returns the number of matching log lines. */
  count(pattern: RegExp): number {
    return this.#lines.filter((line) => pattern.test(line)).length
  }

  async health(): Promise<Health> {
    this.#mustRun()
    const response = await fetch(this.#url)
    return (await response.json()) as Health
  }

  /** Requests it to stop, as an orchestrator does; returns its exit code. */
  async stop(): Promise<number | null> {
    // Not `exit`: the last log lines may still be on their way then.
    const closed = once(this.#child, 'close')
    this.#child.kill('SIGTERM')
    await closed
    return this.#child.exitCode
  }

  /** Kills the process if it is still running. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }

  #mustRun(): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null)
      throw new Error('The service has ended.')
  }
}
