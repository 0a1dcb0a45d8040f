import { randomUUID } from 'node:crypto'
import { Admin, Producer } from '@platformatic/kafka'
import type { Transport } from '@redrive/runtime'
import type { ConsumerGroup, SentMessage, TransportFault, TransportFixture } from '@redrive/testing'
import {
  deadLetterTopic,
  type KafkaOptions,
  type KafkaTransport,
  kafka,
  kafkaSource,
  replayedTopic,
  retryTopic,
  TIERS_MS,
} from '../src/index.ts'
import { Client } from '../src/protocol/client.ts'
import { lagOf } from '../src/consume/lag.ts'
import { Offsets } from '../src/protocol/offsets.ts'
import { END_TXN, FaultyProcess, PRODUCE } from './process.ts'
import { until } from './rig.ts'

export interface KafkaWorld extends TransportFixture {
  readonly topic: string
  readonly group: string
  /** The group of `otherGroup`. */
  readonly secondGroup: string
  otherGroup(): ConsumerGroup
  transport(fault?: TransportFault, options?: Partial<KafkaOptions>): Transport
}

/** One partition on several brokers, because each partition has three replicas there. */
const partitionsOn = (brokers: readonly string[]) => (brokers.length > 1 ? 1 : 2)

/** 30 at a time: each is 18 partitions and a group, and a small broker creates those of all within 20 s. */
const WORLDS = 30
let worlds = 0
const waiting: (() => void)[] = []

async function takePlace(): Promise<void> {
  if (worlds < WORLDS) worlds += 1
  else await new Promise<void>((resolve) => waiting.push(resolve))
}

function leavePlace(): void {
  const next = waiting.shift()
  if (next === undefined) worlds -= 1
  else next()
}

/** A new topic on the brokers, with transports whose connections a test can observe and break. */
export async function kafkaWorld(
  brokers: readonly string[],
  options: Partial<KafkaOptions> = {},
): Promise<KafkaWorld> {
  await takePlace()
  const name = randomUUID()
  const topic = `orders-${name}`
  // Group names are shared by the whole cluster.
  const group = `billing-${name}`
  const secondGroup = `shipping-${name}`
  const base = {
    clientId: 'world',
    bootstrapBrokers: [...brokers],
    retries: 300,
    retryDelay: 100,
    requestTimeout: 60_000,
  }
  const admin = new Admin(base)
  const client = new Client(base)
  const offsets = new Offsets(client, group)
  const producer = new Producer({ ...base, idempotent: true })
  const replicas = Math.min(3, brokers.length)
  await admin.createTopics({ topics: [topic], partitions: partitionsOn(brokers), replicas })
  await until('the topic is known', async () => (await admin.listTopics()).includes(topic), {
    timeout: 60_000,
  })
  const processes = new Map<
    KafkaTransport,
    { readonly process: FaultyProcess; readonly clientId: string }
  >()
  const retries = TIERS_MS.map((tierMs) => retryTopic(topic, group, tierMs))
  let isRefusing = true

  const membersOf = async (clientId: string | undefined) => {
    const groups = await admin.describeGroups({ groups: [group] })
    const members = [...(groups.get(group)?.members.values() ?? [])]
    return members.filter((member) => member.clientId === clientId).map(({ id }) => id)
  }

  const remove = async (members: readonly string[]) => {
    if (members.length === 0) return
    await admin.removeMembersFromConsumerGroup({
      groupId: group,
      members: members.map((memberId) => ({ memberId })),
    })
  }

  function transport(fault?: TransportFault, own: Partial<KafkaOptions> = {}): Transport {
    const process = new FaultyProcess(fault, () => isRefusing)
    const clientId = `transport-${randomUUID()}`
    const made = kafka({
      brokers,
      topic,
      group,
      sessionTimeout: '6s',
      drainTimeout: '1s',
      confirmTimeout: '5s',
      ...options,
      ...own,
      client: { clientId, context: process, retryDelay: 100 },
    })
    const enact = made.enact.bind(made)
    made.enact = (delivery, decision) => {
      process.isArmed = true
      return enact(delivery, decision)
    }
    processes.set(made, { process, clientId })
    return made
  }

  return {
    topic,
    group,
    secondGroup,
    transport,
    otherGroup: () => ({
      transport: () => transport(undefined, { group: secondGroup }),
      source: () => kafkaSource({ brokers, topic, group: secondGroup }),
    }),
    source: () => kafkaSource({ brokers, topic, group }),
    send: (message) => sendTo(producer, topic, message),
    async backlog() {
      const alive = [...processes].filter(([, { process }]) => process.isAlive)
      // A member that dies while it commits never responds.
      await Promise.all(
        alive.map(([one, { process }]) => Promise.race([one.committed(), process.death])),
      )
      const existing = await admin.listTopics()
      return lagOf(
        client,
        offsets,
        [topic, ...retries].filter((name) => existing.includes(name)),
      )
    },
    async crash(of) {
      const { process, clientId } = processes.get(of as KafkaTransport) ?? {}
      process?.die()
      // Without this, the session would time out later.
      await remove(await membersOf(clientId))
    },
    async stealOwnership(of) {
      const { clientId } = processes.get(of as KafkaTransport) ?? {}
      const before = await membersOf(clientId)
      await remove(before)
      // It joins again with another member id, and then detects the lost partitions.
      await until('the transport joins again', async () => {
        const now = await membersOf(clientId)
        return now.length > 0 && !now.some((id) => before.includes(id))
      })
    },
    dropResponse(of) {
      const { process } = processes.get(of as KafkaTransport) ?? {}
      const isTransactional = options.handOff === 'transactional'
      if (process !== undefined) process.droppedResponse = isTransactional ? END_TXN : PRODUCE
    },
    async retentionMs() {
      const resourceName = deadLetterTopic(topic, group)
      const [described] = await admin.describeConfigs({
        resources: [{ resourceType: TOPIC, resourceName }],
      })
      const config = described?.configs.find(({ name: one }) => one === 'retention.ms')
      return Number(config?.value)
    },
    cannot: {
      lease: 'a partition moves to a consumer that joins: a record is not bound to its first owner',
    },
    heal() {
      isRefusing = false
    },
    async close() {
      try {
        const all = await admin.listTopics()
        const own = [topic, ...[group, secondGroup].flatMap((one) => topicsOf(topic, one))]
        await admin.deleteTopics({ topics: own.filter((name) => all.includes(name)) })
        await Promise.all([admin.close(), producer.close(), client.close()])
      } finally {
        leavePlace()
      }
    },
  }
}

/** `resourceType` of a topic in the protocol. */
const TOPIC = 2 as const

const topicsOf = (topic: string, group: string) => [
  ...TIERS_MS.map((tierMs) => retryTopic(topic, group, tierMs)),
  deadLetterTopic(topic, group),
  replayedTopic(topic, group),
]

async function sendTo(
  producer: Producer,
  topic: string,
  { bytes, key, lane, headers = {}, contentType, type }: SentMessage,
): Promise<string> {
  const named = {
    ...headers,
    ...(key === undefined ? {} : { 'redrive-key': key }),
    ...(contentType === undefined ? {} : { 'content-type': contentType }),
    ...(type === undefined ? {} : { ce_type: type }),
  }
  const entries = Object.entries(named).map(
    ([name, value]) => [Buffer.from(name), Buffer.from(value)] as const,
  )
  const { offsets = [] } = await producer.send({
    messages: [
      {
        topic,
        ...(lane === undefined ? {} : { key: Buffer.from(lane) }),
        value: Buffer.from(bytes),
        headers: new Map(entries),
      },
    ],
  })
  const { partition = 0, offset = 0n } = offsets[0] ?? {}
  return `${topic}/${partition}/${offset}`
}
