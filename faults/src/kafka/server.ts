import { endingIn } from '../evidence/expected-ends.ts'
import type { Evidence, FoundMessage, Place } from '../evidence/evidence.ts'
import { countEffects, forgetRun, readEffects } from '../harness/effects.ts'
import { readHistory } from '../evidence/history.ts'
import { isAsSent } from '../evidence/message.ts'
import type { Progress, Server } from '../harness/server.ts'
import { boundOf } from './bound.ts'
import {
  type Committed,
  committedBy,
  deleteRun,
  endsOf,
  type Offsets,
  readPartition,
  type StoredRecord,
  topicsOf,
} from './broker.ts'
import { storedCommits } from './commits.ts'
import { finishedAbove, type StoredCommit } from './wire-format.ts'
import type { KafkaWorld } from './world.ts'

/** Evidence with the cluster's own log of commits. */
export interface KafkaEvidence extends Evidence {
  readonly commits: readonly StoredCommit[]
}

export const kafkaServer: Server<KafkaWorld> = {
  look,
  // Offsets are exact: they count every message.
  isOver: async () => true,
  countEffects: ({ pool, run }) => countEffects(pool, run),
  collect,
  async forget({ broker, pool, run }) {
    await forgetRun(pool, run)
    await deleteRun(broker, run)
  },
}

/** Returns the place of a topic such as `topic.of-topic.retry.1s`. */
function placeOf(topic: string): Place | 'dead letters' {
  if (topic.endsWith('.dlq')) return 'dead letters'
  return topic.includes('.retry.') ? 'delay' : 'source'
}

const topicOf = (place: string) => place.slice(0, place.lastIndexOf('/'))
const numberOf = (place: string) => Number(place.slice(place.lastIndexOf('/') + 1))

/** Returns the group in the name of a topic such as `topic.of-topic.dlq`; none for a source. */
const groupsIn = (topic: string): readonly string[] => /\.(of-[^.]+)\./.exec(topic)?.slice(1) ?? []

async function look(world: KafkaWorld): Promise<Progress> {
  const { broker, run, expected, pool } = world
  const effects = await countEffects(pool, run)
  const topics = await topicsOf(broker, run)
  // Reads commits first. A copy is stored before its original is committed, so at least one of the
  // two is seen.
  const committed = await committedIn(broker, topics)
  const ends = await endsOf(broker, topics)
  let [dead, waiting] = [0, 0]
  for (const [name, end] of ends) {
    if (placeOf(topicOf(name)) === 'dead letters') dead += end
    else waiting += Math.max(0, end - (committed.get(name)?.mark ?? 0))
  }
  const areEnough = effects >= expected.effect && dead >= expected.dlq + expected.quarantine
  const isQuiet = waiting === 0
  return { hasAll: areEnough && isQuiet && (await hasEach(world, ends)), isQuiet }
}

/** A duplicate could hide a missing message in a count, so each message must have been seen. */
async function hasEach({ broker, run, folder, pool }: KafkaWorld, ends: Offsets): Promise<boolean> {
  const dead = [...ends].filter(([name]) => placeOf(topicOf(name)) === 'dead letters')
  const records = await Promise.all(
    dead.map(([name, end]) => readPartition(broker, topicOf(name), numberOf(name), [0, end])),
  )
  const effects = await readEffects(pool, run)
  const seen = new Set([...effects.keys(), ...records.flat().map((record) => foundIn(record).id)])
  return endingIn(readHistory(folder)).every((id) => seen.has(id))
}

/** Returns the committed offsets of all groups that consume one of these topics. */
async function committedIn(
  broker: KafkaWorld['broker'],
  topics: readonly string[],
): Promise<ReadonlyMap<string, Committed>> {
  const groups = new Set(topics.flatMap(groupsIn))
  const committed = await Promise.all([...groups].map((group) => committedBy(broker, group)))
  return new Map(committed.flatMap((ofGroup) => [...ofGroup]))
}

async function collect(world: KafkaWorld): Promise<KafkaEvidence> {
  const { broker, run, folder, pool, commitsFrom } = world
  const entries = readHistory(folder)
  return {
    entries,
    found: await findRecords(world),
    effects: await readEffects(pool, run),
    bound: boundOf(entries),
    commits: await storedCommits(broker, run, commitsFrom),
  }
}

/** Returns all dead letters, and the unfinished records of the other topics. */
async function findRecords({ broker, run }: KafkaWorld): Promise<readonly FoundMessage[]> {
  const topics = await topicsOf(broker, run)
  const committed = await committedIn(broker, topics)
  const ends = await endsOf(broker, topics)
  const found = [...ends].map(async ([name, end]) => {
    const topic = topicOf(name)
    const isDead = placeOf(topic) === 'dead letters'
    const { mark = 0, metadata = '' } = isDead ? {} : (committed.get(name) ?? {})
    if (mark >= end) return []
    const records = await readPartition(broker, topic, numberOf(name), [mark, end])
    const finished = finishedAbove({ group: '', place: name, mark, metadata, at: 0 })
    const isOpen = ({ offset, headers }: StoredRecord) =>
      !headers.has('redrive-time') && !finished.some(([from, to]) => offset >= from && offset < to)
    return records.filter(isOpen).map(foundIn)
  })
  return (await Promise.all(found)).flat()
}

const QUARANTINED: ReadonlySet<string | undefined> = new Set([
  'same_failure_repeated',
  'crash_loop',
])

function foundIn({ topic, value, headers }: StoredRecord): FoundMessage {
  const id = headers.get('redrive-key') ?? 'unknown'
  const reason = headers.get('redrive-reason')
  const place = placeOf(topic)
  return {
    id,
    queue: topic,
    place: place === 'dead letters' ? (QUARANTINED.has(reason) ? 'quarantine' : 'dlq') : place,
    reason,
    isWhole: value !== null && isAsSent(id, value),
  }
}
