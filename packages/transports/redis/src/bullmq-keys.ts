import { type Script, type ScriptRunner, scriptRunner } from '@redrive/redis-internal'
import type { ResolvedBullmqOptions } from './bullmq-options.ts'

/** Keys of Redrive, next to those of the queue. */
const OF_REDRIVE: ReadonlyMap<string, string> = new Map(
  ['ingested', 'leases', 'replays', 'cycles'].map((name) => [name, `redrive:${name}`]),
)

/** Runs scripts on the keys of a queue: those of BullMQ, and those of Redrive. */
export class BullmqKeys {
  readonly #toKey: (name: string) => string
  readonly #runScript: ScriptRunner

  constructor({ client, queue, timeoutMs }: ResolvedBullmqOptions) {
    this.#toKey = (name) => queue.toKey(OF_REDRIVE.get(name) ?? name)
    this.#runScript = scriptRunner({ client, timeoutMs, replies: 'text' })
  }

  /** Runs a script on keys with these names. `''` is the beginning of the keys of jobs. */
  run(script: Script, names: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#runScript(script, names.map(this.#toKey), args)
  }

  /** Runs a script for each page of a hash. Its first argument and its result are the cursor. */
  async scan(script: Script, names: readonly string[], args: readonly string[]): Promise<void> {
    let cursor = '0'
    do cursor = String(await this.run(script, names, [cursor, ...args]))
    while (cursor !== '0')
  }
}
