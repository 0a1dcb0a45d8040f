import {
  Admin,
  Base,
  type Connection,
  fetchV17,
  kGetConnection,
  listOffsetsV9,
  metadataV12,
} from '@platformatic/kafka'
import { becomesTrue } from '../harness/wait.ts'

/**
 * The cluster as an administrator sees it, with plain requests of the client library. It uses no
 * code of the transport under test, so a mistake there stays visible.
 */
export interface Broker {
  readonly addresses: readonly string[]
  readonly admin: Admin
  readonly base: Base
  close(): Promise<void>
}

export function brokerAt(addresses: readonly string[]): Broker {
  const options = {
    clientId: 'faults',
    bootstrapBrokers: [...addresses],
    retries: 20,
    retryDelay: 250,
    requestTimeout: 5_000,
  }
  const admin = new Admin(options)
  const base = new Base(options)
  return {
    addresses,
    admin,
    base,
    async close() {
      await Promise.all([admin.close(), base.close()])
    },
  }
}

const MOST_REPLICAS = 3

/** 30 s: all brokers know a new topic within one second, unless a broker is starting. */
const KNOWN_MS = 30_000

export async function createTopics(
  broker: Broker,
  topics: readonly string[],
  partitions: number,
  replicas: number = Math.min(MOST_REPLICAS, broker.addresses.length),
): Promise<void> {
  const { admin } = broker
  await admin.createTopics({ topics: [...topics], partitions, replicas })
  const isKnown = async () => {
    const all = new Set(await admin.listTopics())
    if (!topics.every((topic) => all.has(topic))) return false
    const layout = await layoutOf(broker, topics)
    const leaders = topics.flatMap((topic) => layout.get(topic)?.leaders ?? [])
    return leaders.length === topics.length * partitions && leaders.every((leader) => leader > 0)
  }
  if (await becomesTrue(isKnown, { withinMs: KNOWN_MS })) return
  throw new Error('Kafka does not list the topics that were just created.')
}

/** Deletes a topic and waits until the brokers have done it. */
export async function deleteTopic({ admin }: Broker, topic: string): Promise<void> {
  await admin.deleteTopics({ topics: [topic] })
  const isGone = async () => !(await admin.listTopics()).includes(topic)
  if (!(await becomesTrue(isGone, { withinMs: KNOWN_MS })))
    throw new Error(`Kafka still lists ${topic}, which was deleted.`)
}

/** Adds partitions to a topic until it has this number, and waits until the brokers report them. */
export async function addPartitions(broker: Broker, topic: string, count: number): Promise<void> {
  await broker.admin.createPartitions({ topics: [{ name: topic, count }] })
  const isKnown = async () => {
    const leaders = (await layoutOf(broker, [topic])).get(topic)?.leaders ?? []
    return leaders.length === count && leaders.every((leader) => leader > 0)
  }
  if (!(await becomesTrue(isKnown, { withinMs: KNOWN_MS })))
    throw new Error(`Kafka does not report the ${count} partitions of ${topic}.`)
}

/**
 * Returns topics whose names start with this text: those of a run, or an internal one of the
 * cluster.
 */
export async function topicsOf({ admin }: Broker, run: string): Promise<readonly string[]> {
  const all = await admin.listTopics({ includeInternals: true })
  return all.filter((topic) => topic.startsWith(run))
}

/** 50 at a time: a broker that deletes hundreds concurrently does nothing else. */
const DELETED = 50

export async function deleteRun(broker: Broker, run: string): Promise<void> {
  const topics = [...(await topicsOf(broker, run))]
  while (topics.length > 0) await broker.admin.deleteTopics({ topics: topics.splice(0, DELETED) })
}

/** One offset for each partition, by `topic/partition`. */
export type Offsets = ReadonlyMap<string, number>

const LATEST = -1n
const ANY = -1
const NO_TRANSACTION = 0

/** Returns the end offsets of the logs. */
export async function endsOf(broker: Broker, topics: readonly string[]): Promise<Offsets> {
  const layout = await layoutOf(broker, topics)
  const partitions = [...layout].flatMap(([name, { leaders }]) =>
    leaders.map((leader, partitionIndex) => ({ name, leader, partitionIndex })),
  )
  const ends = new Map<string, number>()
  for (const [leader, led] of Map.groupBy(partitions, (one) => one.leader)) {
    const request = [...Map.groupBy(led, ({ name }) => name)].map(([name, ofTopic]) => ({
      name,
      partitions: ofTopic.map(({ partitionIndex }) => ({
        partitionIndex,
        currentLeaderEpoch: ANY,
        timestamp: LATEST,
      })),
    }))
    const connection = await connectionTo(broker, leader)
    const answer = await listOffsetsV9.api.async(connection, ANY, NO_TRANSACTION, request)
    for (const { name, partitions } of answer.topics) {
      for (const { partitionIndex, offset } of partitions) {
        ends.set(`${name}/${partitionIndex}`, Number(offset))
      }
    }
  }
  return ends
}

export interface Committed {
  readonly mark: number
  readonly metadata: string
}

/** Returns the committed offsets of a group. */
export async function committedBy(
  { admin }: Broker,
  group: string,
): Promise<ReadonlyMap<string, Committed>> {
  const [found] = await admin.listConsumerGroupOffsets({ groups: [group] })
  const committed = (found?.topics ?? []).flatMap(({ name, partitions }) =>
    partitions.map(({ partitionIndex, committedOffset, metadata }) => {
      const what: Committed = { mark: Number(committedOffset), metadata: metadata ?? '' }
      return [`${name}/${partitionIndex}`, what] as const
    }),
  )
  return new Map(committed)
}

// ---- reading ------------------------------------------------------------------------------------

export interface StoredRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: ReadonlyMap<string, string>
}

interface TopicLayout {
  readonly id: string
  /** The leader of each partition. */
  readonly leaders: readonly number[]
}

/** Returns the leaders as any broker reports them. The client library omits internal topics. */
async function layoutOf(
  broker: Broker,
  topics: readonly string[],
): Promise<ReadonlyMap<string, TopicLayout>> {
  if (topics.length === 0) return new Map()
  const connection = await anyConnection(broker)
  const { topics: found } = await metadataV12.api.async(connection, [...topics], false, false)
  return new Map(
    found.map(({ name, topicId: id, partitions }) => {
      const sorted = [...partitions].sort((a, b) => a.partitionIndex - b.partitionIndex)
      return [name ?? '', { id, leaders: sorted.map(({ leaderId }) => leaderId) }]
    }),
  )
}

async function anyConnection(broker: Broker): Promise<Connection> {
  const { brokers } = await broker.base.metadata({ topics: [], forceUpdate: true })
  let problem: unknown = new Error('no broker is known')
  for (const node of brokers.keys()) {
    try {
      return await connectionTo(broker, node)
    } catch (error) {
      problem = error
    }
  }
  throw problem
}

async function connectionTo({ base }: Broker, number: number): Promise<Connection> {
  const { brokers } = await base.metadata({ topics: [] })
  const node = brokers.get(number)
  if (node === undefined) throw new Error(`broker ${number} is not known`)
  return new Promise((resolve, reject) => {
    base[kGetConnection](node, (error, connection) => {
      if (connection === undefined) reject(error ?? new Error('no connection'))
      else resolve(connection)
    })
  })
}

const IS_TRANSACTIONAL = 0b1_0000
const IS_CONTROL = 0b10_0000
const WAIT_MS = 500
const MOST_BYTES = 4_194_304

type Batch = NonNullable<fetchV17.FetchResponsePartition['records']>[number]

/** Reads all records of a partition from an offset on, except aborted and undecided ones. */
export async function readPartition(
  broker: Broker,
  topic: string,
  partition: number,
  range: readonly [from: number, to: number],
): Promise<readonly StoredRecord[]> {
  const found: StoredRecord[] = []
  const undecided = new Map<bigint, StoredRecord[]>()
  let [next] = range
  const [, end] = range
  if (next >= end) return []
  const { id = '', leaders = [] } = (await layoutOf(broker, [topic])).get(topic) ?? {}
  const connection = await connectionTo(broker, leaders[partition] ?? ANY)
  while (next < end) {
    const batches = await fetchFrom(connection, id, partition, next)
    if (batches.length === 0)
      throw new Error(`${topic}/${partition} does not return records from offset ${next} on`)
    for (const batch of batches) {
      const last = Number(batch.firstOffset) + batch.lastOffsetDelta
      if (last < next) continue
      const records = recordsIn(batch, topic, partition).filter(({ offset }) => offset >= next)
      next = last + 1
      decide(batch, records, { found, undecided })
    }
  }
  return found.sort((a, b) => a.offset - b.offset)
}

/** Records of a transaction count only after its end marker. */
function decide(
  { attributes, producerId, records: [marker] }: Batch,
  records: readonly StoredRecord[],
  into: {
    readonly found: StoredRecord[]
    readonly undecided: Map<bigint, StoredRecord[]>
  },
): void {
  if ((attributes & IS_CONTROL) !== 0) {
    const isCommit = marker?.key?.readInt16BE(2) === 1
    if (isCommit) into.found.push(...(into.undecided.get(producerId) ?? []))
    into.undecided.delete(producerId)
  } else if ((attributes & IS_TRANSACTIONAL) === 0) into.found.push(...records)
  else into.undecided.set(producerId, [...(into.undecided.get(producerId) ?? []), ...records])
}

async function fetchFrom(
  connection: Connection,
  topicId: string,
  partition: number,
  offset: number,
): Promise<readonly Batch[]> {
  const wanted = {
    partition,
    currentLeaderEpoch: ANY,
    fetchOffset: BigInt(offset),
    lastFetchedEpoch: ANY,
    partitionMaxBytes: MOST_BYTES,
  }
  const answer = await fetchV17.api.async(
    connection,
    WAIT_MS,
    1,
    MOST_BYTES,
    NO_TRANSACTION,
    0,
    ANY,
    [{ topicId, partitions: [wanted] }],
    [],
    '',
  )
  return answer.responses[0]?.partitions[0]?.records ?? []
}

function recordsIn(batch: Batch, topic: string, partition: number): readonly StoredRecord[] {
  return batch.records.map(({ offsetDelta, key, value, headers }) => ({
    topic,
    partition,
    offset: Number(batch.firstOffset) + offsetDelta,
    key: key ?? null,
    value: value ?? null,
    headers: new Map(
      [...(headers as unknown as Iterable<readonly [Buffer, Buffer | null]>)].map(
        ([name, content]) => [name.toString(), content?.toString() ?? ''],
      ),
    ),
  }))
}
