import { RedriveError } from '@redrive/core'
import type { Clock } from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import { portOf, type RedisPort } from './client.ts'
import type { ResolvedOptions } from './options.ts'
import type { Script } from './scripts.ts'

/** Runs scripts on the server, and converts its errors. */
export class Server {
  readonly #port: RedisPort
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #prefix: string
  readonly #keys: readonly string[]

  constructor({ client, clock, timeoutMs, prefix }: ResolvedOptions) {
    this.#port = portOf(client)
    this.#clock = clock
    this.#timeoutMs = timeoutMs
    this.#prefix = prefix
    const names = ['index', 'expiry', 'entries', 'facts', 'totals']
    this.#keys = names.map((name) => `{${prefix}}:${name}`)
  }

  run(script: Script, ...args: readonly (string | number)[]): Promise<unknown> {
    return this.#run(script, this.#keys, args)
  }

  /** Runs a script with the claim on a dead letter as one more key. The claim expires automatically. */
  runOnClaim(script: Script, id: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return this.#run(script, [...this.#keys, `{${this.#prefix}}:claim:${id}`], args)
  }

  async #run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const work = this.#evaluate(script, keys, args.map(String))
    const onTimeout = () => {
      throw noAnswer(this.#timeoutMs)
    }
    try {
      return await withTimeout(work, this.#timeoutMs, onTimeout, this.#clock)
    } catch (error) {
      throw isReply(error, 'OOM') ? outOfMemory(error) : error
    }
  }

  /** Sends a script again when needed: the server drops scripts on a restart, on SCRIPT FLUSH and after a fail-over. */
  async #evaluate(
    { text, sha }: Script,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    try {
      return await this.#port.evalSha(sha, keys, args)
    } catch (error) {
      if (!isReply(error, 'NOSCRIPT')) throw error
      return await this.#port.eval(text, keys, args)
    }
  }
}

/**
 * Checks the code of an error reply, which is its first word; clients have no field for it. Servers before
 * version 7 add their own text around an error of a command in a script.
 */
function isReply(error: unknown, code: 'OOM' | 'NOSCRIPT'): boolean {
  return error instanceof Error && new RegExp(`(^|-)${code} `).test(error.message)
}

const outOfMemory = (cause: unknown) =>
  new RedriveError(
    'DLQ_FULL',
    'Redis has reached its maxmemory. Replay or delete dead letters, or increase maxmemory.',
    { cause },
  )

const noAnswer = (timeoutMs: number) =>
  new RedriveError(
    'OUTCOME_UNKNOWN',
    `Redis did not respond within ${timeoutMs} ms. The command may or may not have been applied. Saving again is safe.`,
  )
