import { randomUUID } from 'node:crypto'
import type { Transport } from '@redrive/runtime'
import type { SentMessage, TransportFault, TransportFixture } from '@redrive/testing'
import {
  AckPolicy,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
} from '@nats-io/jetstream'
import { connect, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node'
import { toHeaders } from '../src/delivery.ts'
import { connectionOptions, type NatsOptions, nats, natsSource, topologyOf } from '../src/index.ts'
import { Link } from './link.ts'

/** The connection of a test file, and what it reads. */
export interface Site {
  readonly url: string
  readonly connection: NatsConnection
  readonly manager: JetStreamManager
}

export async function siteAt(url: string): Promise<Site> {
  const connection = await connect(connectionOptions(url))
  return { url, connection, manager: await jetstreamManager(connection) }
}

export interface NatsWorld extends TransportFixture {
  readonly stream: string
  /** The beginning of the subjects of the stream. */
  readonly subject: string
  transport(fault?: TransportFault, options?: Partial<NatsOptions>): Transport
  linkOf(transport: Transport): Link
}

/** 3 s: short enough to wait for its end, and longer than a busy machine stops a process. */
const LEASE_MS = 3_000
const GROUP = 'billing'
const OTHER = 'shipping'
const NANOS = 1_000_000

/** A new stream with two consumers, as an application would have created it. */
export async function natsWorld(
  { url, connection, manager }: Site,
  retention: RetentionPolicy = RetentionPolicy.Limits,
): Promise<NatsWorld> {
  const stream = `orders-${randomUUID()}`
  const subject = `orders.${randomUUID()}`
  const groups = retention === RetentionPolicy.Workqueue ? [GROUP] : [GROUP, OTHER]
  await manager.streams.add({ name: stream, subjects: [`${subject}.>`], retention })
  for (const group of groups) {
    await manager.consumers.add(stream, {
      durable_name: group,
      ack_policy: AckPolicy.Explicit,
      ack_wait: LEASE_MS * NANOS,
    })
  }
  const links = new Map<Transport, Link>()
  let isRefusing = true

  function transport(group: string, fault?: TransportFault, options: Partial<NatsOptions> = {}) {
    const link = new Link(url, connection, fault, () => isRefusing)
    const made = nats({
      stream,
      consumer: group,
      lease: LEASE_MS,
      connect: () => link.open(),
      ...options,
    })
    links.set(made, link)
    return made
  }

  const linkOf = (of: Transport): Link => {
    const link = links.get(of)
    if (link === undefined) throw new Error('This transport belongs to another world.')
    return link
  }

  const source = (consumer: string) => natsSource({ servers: url, stream, consumer })
  const { retry, dead } = topologyOf(stream, GROUP)

  return {
    stream,
    subject,
    linkOf,
    transport: (fault, options) => transport(GROUP, fault, options),
    lease: { ms: LEASE_MS, transport: () => transport(GROUP) },
    stealOwnership: (of) => linkOf(of).loseLeases(LEASE_MS),
    dropResponse: (of) => linkOf(of).dropResponse(),
    source: () => source(GROUP),
    ...(retention === RetentionPolicy.Workqueue
      ? { cannot: { otherGroup: 'a work queue has one consumer for each subject' } }
      : {
          otherGroup: () => ({ transport: () => transport(OTHER), source: () => source(OTHER) }),
        }),
    async send({ bytes, key, headers, contentType, type, lane = 'plain' }: SentMessage) {
      const id = randomUUID()
      const described = toHeaders({
        ...headers,
        'Nats-Msg-Id': id,
        ...(key === undefined ? {} : { 'redrive-key': key }),
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
        ...(type === undefined ? {} : { 'ce-type': type }),
      })
      await stored(connection, `${subject}.${lane}`, bytes, described)
      return id
    },
    async backlog() {
      const { num_pending, num_ack_pending } = await manager.consumers.info(stream, GROUP)
      const { state } = await manager.streams.info(retry.stream).catch(() => NO_STREAM)
      return num_pending + num_ack_pending + state.messages
    },
    async retentionMs() {
      const stored = await manager.streams.getMessage(dead.stream, {
        last_by_subj: dead.deadLetters,
      })
      return Number.parseInt(stored?.header.get('Nats-TTL') ?? '', 10) * 1_000
    },
    crash: (of) => linkOf(of).die(),
    heal() {
      isRefusing = false
    },
    async close() {
      const own = groups.flatMap((group) => {
        const { retry: retries, dead: given } = topologyOf(stream, group)
        return [retries.stream, given.stream]
      })
      for (const name of [stream, ...own]) await manager.streams.delete(name).catch(() => undefined)
    },
  }
}

/** 20 tries of 1 s: a server that restarts loses a message that it has not confirmed. Its id makes one of all tries. */
async function stored(
  connection: NatsConnection,
  subject: string,
  bytes: Uint8Array,
  headers: MsgHdrs,
): Promise<void> {
  for (let left = 20; ; left--) {
    try {
      const response = await connection.request(subject, bytes, { timeout: 1_000, headers })
      const { error } = response.json<{ error?: { description: string } }>()
      if (error === undefined) return
      throw new Error(error.description)
    } catch (error) {
      if (left === 1) throw error
    }
  }
}

/** A world counts before its first transport has created the streams of Redrive. */
const NO_STREAM = { state: { messages: 0 } }
