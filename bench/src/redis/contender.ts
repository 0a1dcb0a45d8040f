// One candidate on separate keys: filled before each sample, counted after it.
import { randomUUID } from 'node:crypto'
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { urlOf } from '@redrive/dev-support'
import { Redis } from 'ioredis'
import { failing, type Handler, succeeding, Tally } from '../handlers.ts'
import type { Candidate } from '../harness.ts'
import { openEach } from '../opening.ts'
import { patiently } from '../patience.ts'

/** 50 messages in flight for all candidates. */
export const IN_FLIGHT = 50
/** 1 KB, as in the other benchmarks. */
export const BODY: Buffer = Buffer.from(JSON.stringify({ text: 'x'.repeat(1_013) }))
export const GROUP = 'bench'

/** Everything that a candidate needs. */
export interface Stage {
  /** A new name for its keys. */
  readonly name: string
  readonly client: Redis
  readonly handler: Handler
}

/** A program that handles messages: connected once, receiving only during a sample. */
export interface Contender {
  /** Removes dead letters, and adds `count` messages. */
  fill(count: number): Promise<void>
  start(): Promise<void> | void
  /** Stops receiving; resolves when the results of all handled messages are written. */
  stop(): Promise<void> | void
  close(): Promise<void>
  /** Counts messages that are not done, and dead letters. */
  look(): Promise<Depths>
}

export interface Depths {
  readonly waiting: number
  readonly dead: number
}

export interface Entrant {
  readonly name: string
  readonly open: (stage: Stage) => Promise<Contender>
}

/** The outcome of every message of a sample after one attempt. */
export type Fate = 'done' | 'dead'

/** Opens all candidates, or none if one fails. */
export async function openAll(entrants: readonly Entrant[], fate: Fate): Promise<Candidate[]> {
  const url = await urlOf('redis')
  return openEach(entrants, (entrant) => onItsOwnKeys(url, entrant, fate))
}

async function onItsOwnKeys(url: string, { name, open }: Entrant, fate: Fate): Promise<Candidate> {
  const client = new Redis(url, { maxRetriesPerRequest: null })
  const tally = new Tally()
  const handler = fate === 'done' ? succeeding(tally) : failing(tally)
  const contender = await open({ name: `bench-${randomUUID().slice(0, 8)}`, client, handler })

  return {
    name,
    async prepare(count) {
      await contender.fill(count)
      // Collects the garbage from filling, which is not the candidate's. Only the young generation:
      // a full collection also removes compiled code, and every sample would start cold.
      await nextLoopTurn()
      globalThis.gc?.({ type: 'minor' })
    },
    async run(count) {
      const handled = tally.expect(count)
      await contender.start()
      await patiently(handled, () => `${tally.calls} of ${count} calls`)
      await contender.stop()
      // The last results may still be on their way.
      while ((await contender.look()).waiting > 0) await nextLoopTurn()
    },
    async verify(count) {
      if (tally.calls !== count) throw new Error(`${tally.calls} calls instead of ${count}`)
      const { waiting, dead } = await contender.look()
      const expected = fate === 'dead' ? count : 0
      if (waiting !== 0 || dead !== expected)
        throw new Error(`${waiting} messages wait, and ${dead} dead letters instead of ${expected}`)
    },
    async close() {
      await contender.close()
      client.disconnect()
    },
  }
}

/** Adds messages to a stream in pipelines of 1,000. */
export async function fillStream(client: Redis, stream: string, count: number): Promise<void> {
  for (let done = 0; done < count; done += 1_000) {
    const pipeline = client.pipeline()
    for (let i = done; i < Math.min(count, done + 1_000); i++) {
      pipeline.xadd(stream, '*', 'body', BODY, 'content-type', 'application/json')
    }
    await pipeline.exec()
  }
}

/** Counts the entries of a group that are not acknowledged, and the entries of another stream. */
export async function lookAt(client: Redis, stream: string, deadLetters: string): Promise<Depths> {
  const [group] = (await client.xinfo('GROUPS', stream)) as readonly (readonly unknown[])[]
  const facts = new Map<unknown, unknown>()
  for (let i = 0; i < (group?.length ?? 0); i += 2) facts.set(group?.[i], group?.[i + 1])
  const waiting = Number(facts.get('pending')) + Number(facts.get('lag'))
  return { waiting, dead: await client.xlen(deadLetters) }
}
