import type { Receiver, Transport, TransportNeeds } from '@redrive/runtime'
import type { TransportFault, TransportFixture } from '@redrive/testing'
import { type ConsumerConfig, Kafka, logLevel, Partitioners } from 'kafkajs'
import { Adapter } from '../src/kafkajs/adapter.ts'
import type { KafkaDelivery } from '../src/index.ts'
import { kafkaWorld } from './world.ts'

const NEVER = new Promise<never>(() => undefined)

/** Returns the clients of an application, not connected yet. */
export function kafkajsClients(
  brokers: readonly string[],
  groupId: string,
  timing: Pick<ConsumerConfig, 'heartbeatInterval' | 'maxWaitTimeInMs'>,
) {
  const kafka = new Kafka({ clientId: 'team', brokers: [...brokers], logLevel: logLevel.NOTHING })
  return {
    consumer: kafka.consumer({ groupId, sessionTimeout: 6_000, ...timing }),
    // Idempotent: otherwise the client stores a copy twice when it repeats a request whose response was late.
    producer: kafka.producer({
      createPartitioner: Partitioners.DefaultPartitioner,
      idempotent: true,
      maxInFlightRequests: 1,
    }),
    admin: kafka.admin(),
  }
}

/** A process with separate clients. It can crash, also in the middle of its first hand-off. */
class Team implements Transport<KafkaDelivery> {
  readonly #adapter: Adapter
  readonly #clients
  readonly #fault: TransportFault | undefined
  readonly #isRefusing: () => boolean
  readonly #death = Promise.withResolvers<void>()
  #gone: Promise<unknown> | undefined
  #isArmed = false
  #isResponseDropped = false
  isAlive = true

  constructor(
    brokers: readonly string[],
    { topic, group }: { readonly topic: string; readonly group: string },
    fault: TransportFault | undefined,
    isRefusing: () => boolean,
  ) {
    this.#fault = fault
    this.#isRefusing = isRefusing
    const timing = { heartbeatInterval: 300, maxWaitTimeInMs: 50 }
    this.#clients = kafkajsClients(brokers, group, timing)
    const { consumer, producer, admin } = this.#clients
    this.#adapter = new Adapter({
      topic,
      group,
      admin,
      order: 'none',
      confirmTimeoutMs: 5_000,
      consumer: {
        commitOffsets: (offsets) => this.#ask(() => consumer.commitOffsets(offsets)),
        pause: (topics) => this.isAlive && consumer.pause(topics),
        resume: (topics) => {
          if (this.isAlive) consumer.resume(topics)
        },
        on: consumer.on.bind(consumer),
      },
      producer: {
        send: (record) => {
          if (this.#fault === 'copies_refused' && this.#isRefusing()) {
            return Promise.reject(new Error('The broker does not store copies.'))
          }
          return this.#ask(async () => {
            const answer = await producer.send(record)
            this.#loseIfAsked()
            return answer
          })
        },
      },
    })
  }

  async #ask<T>(request: () => Promise<T>): Promise<T> {
    if (!this.isAlive) return NEVER
    const answer = await request()
    if (this.#fault === 'dies_halfway' && this.#isArmed) void this.#die()
    return this.isAlive ? answer : NEVER
  }

  /** Stores the next copy, but loses its answer. */
  dropResponse(): void {
    this.#isResponseDropped = true
  }

  #loseIfAsked(): void {
    if (!this.#isResponseDropped) return
    this.#isResponseDropped = false
    throw new Error('The answer of the broker was lost.')
  }

  /** Ends the session, which would otherwise time out later. */
  #die(): Promise<unknown> {
    this.isAlive = false
    this.#death.resolve()
    this.#gone ??= Promise.all(Object.values(this.#clients).map((client) => client.disconnect()))
    return this.#gone
  }

  get source() {
    return this.#adapter.source
  }

  get capabilities() {
    return this.#adapter.capabilities
  }

  async open(needs?: TransportNeeds): Promise<void> {
    await Promise.all(Object.values(this.#clients).map((client) => client.connect()))
    await this.#adapter.open(needs)
  }

  async receive(receiver: Receiver<KafkaDelivery>): Promise<void> {
    this.#adapter.receive(receiver)
    const { consumer } = this.#clients
    await consumer.subscribe({ topics: [...this.#adapter.topics], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async (payload) => {
        if (this.isAlive) await this.#adapter.eachBatch(payload)
      },
    })
  }

  enact(...args: Parameters<Adapter['enact']>) {
    this.#isArmed = true
    return this.#adapter.enact(...args)
  }

  limit(count: number): void {
    this.#adapter.limit(count)
  }

  pause(): void {
    this.#adapter.pause()
  }

  resume(): void {
    this.#adapter.resume()
  }

  async committed(): Promise<void> {
    // A crashed process receives no answer.
    if (this.isAlive) await Promise.race([this.#adapter.committed(), this.#death.promise])
  }

  async close(): Promise<void> {
    if (this.isAlive) await this.#adapter.close()
    await this.end()
  }

  async end(): Promise<void> {
    await this.#die()
  }
}

/** The fixture of the contract, with transports on clients of kafkajs. */
export async function kafkaJsWorld(brokers: readonly string[]): Promise<TransportFixture> {
  const world = await kafkaWorld(brokers)
  const teams = new Set<Team>()
  let isRefusing = true

  function team(of: { readonly topic: string; readonly group: string }, fault?: TransportFault) {
    const made = new Team(brokers, of, fault, () => isRefusing)
    teams.add(made)
    return made
  }

  return {
    ...world,
    transport: (fault) => team(world, fault),
    otherGroup: () => ({
      ...world.otherGroup(),
      transport: () => team({ topic: world.topic, group: world.secondGroup }),
    }),
    dropResponse: (transport) => (transport as Team).dropResponse(),
    cannot: {
      ...world.cannot,
      stealOwnership: 'how a client leaves and joins its group is its own affair',
    },
    async backlog() {
      await Promise.all([...teams].map((one) => one.committed()))
      return world.backlog()
    },
    crash: (transport) => (transport as Team).end(),
    heal() {
      isRefusing = false
    },
    async close() {
      await Promise.all([...teams].map((one) => one.end()))
      await world.close()
    },
  }
}
