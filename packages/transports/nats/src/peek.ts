import type { DrainedDeadLetter } from '@redrive/runtime'
import type { JetStreamManager, StoredMsg, StreamConfig } from '@nats-io/jetstream'
import { existing } from './declare.ts'
import { placed } from './delivery.ts'
import { isRemoval, removalFrom } from './foreign.ts'
import { readOwner } from './owner.ts'
import { readDeadLetter } from './read.ts'
import { DEAD_LETTERS, type Topology, topologyOf } from './topology.ts'

/** Reads the dead letters of a consumer without another consumer: the server creates, counts and removes nothing. */
export interface NatsPeek {
  /** Returns the next dead letters, at most `limit`. A later call continues after them. */
  read(limit: number): Promise<readonly DrainedDeadLetter[]>
  /** Counts all dead letters, as `depth` of a source. */
  depth(): Promise<number>
}

/** Opens a stream with dead letters, such as `ORDERS-billing-dlq`. Returns undefined when it is not a stream of Redrive. */
export async function natsPeek(
  manager: JetStreamManager,
  stream: string,
): Promise<NatsPeek | undefined> {
  const { config } = await manager.streams.info(stream)
  const topology = topologyIn(config)
  if (topology === undefined) return undefined
  const { dead } = topology
  const subjects = [dead.deadLetters, dead.quarantine, ...dead.advisories]
  const source = await existing(manager.streams.info(topology.stream))
  const isQueue = source !== undefined && removalFrom(source.config) !== 'keep'
  const isLetter = (stored: StoredMsg) => !(isQueue && isRemoval(stored, topology.stream))
  let after = 0

  return {
    async read(limit) {
      const found: StoredMsg[] = []
      while (found.length < limit) {
        const stored = await nextOf(manager, stream, subjects, after + 1)
        if (stored === undefined) break
        after = stored.seq
        if (isLetter(stored)) found.push(stored)
      }
      return Promise.all(
        found.map(async (one) => {
          const { deadLetter } = await readDeadLetter(placed(stream, one), topology, manager)
          return deadLetter
        }),
      )
    },
    async depth() {
      const { state } = await manager.streams.info(stream, { subjects_filter: '>' })
      return subjects.reduce((sum, subject) => sum + (state.subjects?.[subject] ?? 0), 0)
    },
  }
}

/** Returns the oldest message with one of these subjects from a sequence on. Confirmations of replays are skipped. */
async function nextOf(
  manager: JetStreamManager,
  stream: string,
  subjects: readonly string[],
  seq: number,
): Promise<StoredMsg | undefined> {
  const found = await Promise.all(
    subjects.map((subject) => {
      // The types of the client do not contain this request.
      const next = { seq, next_by_subj: subject } as { seq: number }
      return existing(manager.streams.getMessage(stream, next))
    }),
  )
  return found
    .filter((one) => one !== null && one !== undefined)
    .toSorted((one, other) => one.seq - other.seq)[0]
}

/** Advisories of the server about messages that a consumer gave up. Names contain no dots. */
const ADVISORY = /^\$JS\.EVENT\.ADVISORY\.CONSUMER\.MAX_DELIVERIES\.([^.]+)\.([^.]+)$/

/** Returns the consumer of a stream with dead letters. A stream that a user created has its advisories only. */
function topologyIn({ name, subjects, metadata }: StreamConfig): Topology | undefined {
  const [, stream, consumer] = subjects.flatMap((one) => ADVISORY.exec(one) ?? [])
  const owner = readOwner(metadata) ?? { stream, consumer }
  if (owner.stream === undefined || owner.consumer === undefined || !name.endsWith(DEAD_LETTERS))
    return undefined
  return topologyOf(owner.stream, owner.consumer, name.slice(0, -DEAD_LETTERS.length))
}
