import { RedriveError } from '@redrive/core'
import { type Clock, withTimeout } from '@redrive/runtime'
import { portOf, type RedisPort } from './client.ts'
import type { ResolvedOptions } from './options.ts'
import type { Script } from './scripts.ts'

/** Runs scripts on the server, and says in our words what went wrong. */
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

  /** With the claim on a dead letter as one more key, which is over by itself. */
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

  /** The server forgets scripts when it restarts, when it is told to, and after a fail-over. */
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
 * The first word of an error reply is its code; clients have it nowhere else. Servers before 7 put their
 * own words around that of a command in a script.
 */
function isReply(error: unknown, code: 'OOM' | 'NOSCRIPT'): boolean {
  return error instanceof Error && new RegExp(`(^|-)${code} `).test(error.message)
}

const outOfMemory = (cause: unknown) =>
  new RedriveError(
    'DLQ_FULL',
    'Redis is at its maxmemory and takes no more. Replay or delete dead letters, or raise maxmemory.',
    { cause },
  )

const noAnswer = (timeoutMs: number) =>
  new RedriveError(
    'OUTCOME_UNKNOWN',
    `Redis did not answer within ${timeoutMs} ms: it may or may not have happened. Saving again is safe.`,
  )
