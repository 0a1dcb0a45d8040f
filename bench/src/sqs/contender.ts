// One candidate on a separate queue: filled before each sample, counted after it.
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import type { SQSClient } from '@aws-sdk/client-sqs'
import { failing, type Handler, succeeding, Tally } from '../handlers.ts'
import type { Candidate } from '../harness.ts'
import { openEach } from '../opening.ts'
import { patiently } from '../patience.ts'
import { countingClient, Queues, serverUrl } from './queues.ts'

/** Everything that a candidate needs. */
export interface Stage {
  readonly client: SQSClient
  readonly queue: string
  readonly url: string
  readonly deadLetters: string
  readonly concurrency: number
  readonly handler: Handler
}

/** A program that consumes: receiving only during a sample. */
export interface Contender {
  start(): Promise<void> | void
  /** Stops receiving; everything is deleted by then. */
  stop(): Promise<void> | void
  close(): Promise<void> | void
}

/** The outcome of every message of a sample. */
export interface Fate {
  readonly concurrency: number
  readonly isDeadLettered: boolean
}

export interface Entrant {
  readonly name: string
  readonly open: (stage: Stage) => Promise<Contender> | Contender
}

/** Requests per message of each candidate, over all samples. */
export type Requests = Map<string, { requests: number; messages: number }>

/** Opens all candidates, or none if one fails. */
export async function openAll(
  entrants: readonly Entrant[],
  fate: Fate,
  counts: Requests,
): Promise<Candidate[]> {
  const endpoint = await serverUrl()
  return openEach(entrants, (entrant) => onItsOwnQueue(endpoint, entrant, fate, counts))
}

async function onItsOwnQueue(
  endpoint: string,
  { name, open }: Entrant,
  { concurrency, isDeadLettered }: Fate,
  counts: Requests,
): Promise<Candidate> {
  const queues = await Queues.open(endpoint)
  const { url, deadLetters, queue } = queues
  const counting = countingClient(endpoint)
  const { client } = counting
  const tally = new Tally()
  const handler = isDeadLettered ? failing(tally) : succeeding(tally)
  const contender = await open({ client, queue, url, deadLetters, concurrency, handler })
  await contender.stop()
  const total = { requests: 0, messages: 0 }
  counts.set(name, total)
  return {
    name,
    async prepare(count) {
      await queues.purge(deadLetters)
      await queues.until(deadLetters, 0)
      await queues.fill(count)
      await nextLoopTurn()
      globalThis.gc?.({ type: 'minor' })
      counting.requests = 0
    },
    async run(count) {
      const handled = tally.expect(count)
      await contender.start()
      await patiently(handled, () => `${tally.calls} of ${count} calls`)
      if (isDeadLettered) await queues.until(deadLetters, count)
      await queues.until(url, 0)
      total.requests += counting.requests
      total.messages += count
    },
    async verify(count) {
      await contender.stop()
      if (tally.calls !== count) throw new Error(`${tally.calls} calls instead of ${count}`)
      const dead = await queues.count(deadLetters)
      const expected = isDeadLettered ? count : 0
      if (dead !== expected) throw new Error(`${dead} dead letters instead of ${expected}`)
    },
    async close() {
      await contender.close()
      client.destroy()
      await queues.close()
    },
  }
}
