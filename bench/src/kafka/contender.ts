// One candidate on a separate topic: filled before each sample, counted after it.
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { failing, type Handler, succeeding, Tally } from '../handlers.ts'
import type { Candidate } from '../harness.ts'
import { openEach } from '../opening.ts'
import { patiently } from '../patience.ts'
import {
  Broker,
  brokers,
  deadLettersOf,
  type Names,
  ownNames,
  type RecordOf,
  retriesOf,
} from './broker.ts'
import { Gate } from './gate.ts'

/** Redrive's default. */
export const CONCURRENCY = 50
export const PARTITIONS = 6

const BODY = Buffer.alloc(1_024, 'x')
const KEYS = Array.from({ length: 1_000 }, (_, number) => Buffer.from(`key-${number}`))

/** Returns a record of 1 KB with a key, as most records have. */
export const recordOf: RecordOf = (number) => ({
  key: KEYS[number % KEYS.length] as Buffer,
  value: BODY,
})

/** Everything that a candidate needs. */
export interface Stage extends Names {
  readonly hosts: readonly string[]
  readonly partitions: number
  readonly concurrency: number
  readonly handler: Handler
  /** Topic for records whose handler throws. */
  readonly failedTo: string
  /** Passed as `context` to the client library by candidates that use the same library as Redrive. */
  readonly gate: Gate
}

/** A program that consumes: connected once, receiving only during a sample. */
export interface Contender {
  /** Whether some records stay unfinished, so that the committed offset never reaches the end. */
  readonly isHeldBack?: true
  start(): Promise<void> | void
  /** Stops receiving and commits the finished records. */
  stop(): Promise<void> | void
  close(): Promise<void>
}

/** The outcome of every record of a sample after one call of the handler. */
export type Fate = 'done' | 'deadLettered' | 'retried'

export interface Entrant {
  readonly name: string
  readonly open: (stage: Stage) => Promise<Contender>
  /** Number of partitions. Default 6. */
  readonly partitions?: number
}

/** Opens all candidates, or none if one fails. */
export async function openAll(entrants: readonly Entrant[], fate: Fate): Promise<Candidate[]> {
  const hosts = await brokers()
  return openEach(entrants, (entrant) => onItsOwnTopic(hosts, entrant, fate))
}

async function onItsOwnTopic(
  hosts: readonly string[],
  entrant: Entrant,
  fate: Fate,
): Promise<Candidate> {
  const broker = new Broker(hosts)
  const names = ownNames()
  const candidate = await candidateOn(broker, names, entrant, fate).catch(
    async (error: unknown) => {
      await broker.delete(names)
      await broker.close()
      throw error
    },
  )
  try {
    await primed(candidate)
    return candidate
  } catch (error) {
    await candidate.close?.()
    throw error
  }
}

/** Joins the group before the first sample, because joining takes seconds. */
async function primed(candidate: Candidate): Promise<void> {
  await candidate.prepare?.(1)
  await candidate.run(1)
  await candidate.verify?.(1)
}

async function candidateOn(
  broker: Broker,
  names: Names,
  { name, open, partitions = PARTITIONS }: Entrant,
  fate: Fate,
): Promise<Candidate> {
  const { hosts } = broker
  const { topic } = names
  const gate = new Gate()
  const tally = new Tally()
  const handler = fate === 'done' ? succeeding(tally) : failing(tally)
  const failedTo = fate === 'retried' ? retriesOf(names) : deadLettersOf(names)
  await broker.declare(partitions, topic)
  const stage = { ...names, hosts, partitions, concurrency: CONCURRENCY, handler, failedTo, gate }
  const contender = await open(stage)
  await contender.stop()
  // Redrive has created its own topics by now.
  await broker.declare(partitions, failedTo)
  let ends: readonly number[] = []
  let failedBefore = 0

  return {
    name,
    async prepare(count) {
      await gate.close()
      if (ends.length > 0) await broker.deleteRecords(topic, ends)
      failedBefore = await broker.count(failedTo, partitions)
      await broker.fill(topic, partitions, count, recordOf)
      ends = await broker.ends(topic, partitions)
      // Collects the garbage from filling, which is not the candidate's. Only the young generation:
      // a full collection also removes compiled code, and every sample would start cold.
      await nextLoopTurn()
      globalThis.gc?.({ type: 'minor' })
    },
    async run(count) {
      const handled = tally.expect(count)
      gate.open()
      await contender.start()
      await patiently(handled, () => `${tally.calls} of ${count} calls`)
      await contender.stop()
      if (!contender.isHeldBack) await broker.untilCommitted(names, ends)
    },
    async verify(count) {
      if (tally.calls !== count) throw new Error(`${tally.calls} calls instead of ${count}`)
      const failed = (await broker.count(failedTo, partitions)) - failedBefore
      const expected = fate === 'done' ? 0 : count
      // While retries wait, the consumer of Redrive stores one time record next to them.
      const isExpected = failed === expected || (expected > 0 && failed === expected + 1)
      if (!isExpected) throw new Error(`${failed} copies instead of ${expected}`)
    },
    async close() {
      gate.open()
      try {
        await contender.close()
      } finally {
        await broker.delete(names)
        await broker.close()
      }
    },
  }
}
