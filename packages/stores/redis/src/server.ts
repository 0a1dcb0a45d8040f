import { RedriveError } from '@redrive/core'
import { isReply, type Script, type ScriptRunner, scriptRunner } from '@redrive/redis-internal'
import type { ResolvedOptions } from './options.ts'

/** Runs scripts on the server, and converts its errors. */
export class Server {
  readonly #runScript: ScriptRunner
  readonly #prefix: string
  readonly #keys: readonly string[]

  constructor({ client, clock, timeoutMs, prefix }: ResolvedOptions) {
    this.#runScript = scriptRunner({ client, clock, timeoutMs, replies: 'text' })
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
    try {
      return await this.#runScript(script, keys, args.map(String))
    } catch (error) {
      throw isReply(error, 'OOM') ? outOfMemory(error) : error
    }
  }
}

const outOfMemory = (cause: unknown) =>
  new RedriveError(
    'DLQ_FULL',
    'Redis has reached its maxmemory. Replay or delete dead letters, or increase maxmemory.',
    { cause },
  )
