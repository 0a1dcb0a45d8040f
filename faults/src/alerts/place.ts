import type { Client } from '@redrive/api'
import { deadLetterQueue } from '@redrive/rabbitmq'
import type { ConfirmChannel, Options } from 'amqplib'
import { type Child, type Message, startChild } from '../harness/process.ts'
import { becomesTrue, until } from '../harness/wait.ts'
import type { AlertConsumerOptions, AssignedMessage, Kind } from './consumer.ts'

/** Everything that one case uses. Its queue has the name of its source. */
export interface Place {
  readonly source: string
  readonly addresses: Addresses
  /** The server. */
  readonly client: Client
  /** Starts a consumer of the queue. Prometheus reads its metrics, unless it is hidden. */
  consumer(special?: ConsumerChoice): Promise<AlertConsumer>
  /** Sends messages to the queue. */
  send(kind: Kind, count?: number): Promise<void>
  /** Sends a message to the dead-letter queue, as another program might. */
  sendDeadLetter(body: Buffer, properties?: Options.Publish): Promise<void>
  /** Runs `work` repeatedly until the case ends. */
  repeat(work: () => Promise<void>): void
  /** Records that the fault begins now. The last call counts. */
  faultBegins(): void
  /** Returns a duration in the time of the drill, in ms. */
  scaledMs(ms: number): number
  /** Calls `end` when the case ends. */
  onEnd(end: () => Promise<unknown>): void
}

export interface ConsumerChoice extends Partial<AlertConsumerOptions> {
  readonly isHidden?: boolean
}

export interface Addresses {
  readonly amqpUrl: string
  readonly databaseUrl: string
  readonly brokers: readonly string[]
  readonly channel: ConfirmChannel
}

export type AlertConsumer = Child<Message | AssignedMessage>

export interface OwnedPlace {
  readonly place: Place
  /** When the fault began, in ms of the harness. */
  readonly begunAtMs: number
  end(): Promise<void>
}

export interface PlaceDeps {
  readonly source: string
  readonly addresses: Addresses
  readonly client: Client
  readonly metricsPort: number
  readonly factor: number
}

/** 200 ms: several messages between two scrapes. */
const REPEAT_MS = 200

/** Makes a place. `end` ends everything that was started there. */
export function placeOf({ source, addresses, client, metricsPort, factor }: PlaceDeps): OwnedPlace {
  let begunAtMs = performance.now()
  const ends: (() => Promise<unknown>)[] = []
  const program = new URL('./consumer.ts', import.meta.url)
  const publish = async (queue: string, body: Buffer, properties: Options.Publish = {}) => {
    addresses.channel.sendToQueue(queue, body, { persistent: true, ...properties })
    await addresses.channel.waitForConfirms()
  }
  const place: Place = {
    source,
    addresses,
    client,
    async consumer({ isHidden = false, ...special } = {}) {
      const rabbitmq = { url: addresses.amqpUrl, queue: source }
      const child: AlertConsumer = startChild(program, { rabbitmq, metricsPort, ...special })
      ends.push(() => child.kill())
      await child.waitFor('ready')
      if (!isHidden) child.send('expose')
      return child
    },
    async send(kind, count = 1) {
      for (let sent = 0; sent < count; sent++) {
        await publish(source, Buffer.from(JSON.stringify({ kind })), {
          messageId: `${source}-${crypto.randomUUID()}`,
        })
      }
    },
    sendDeadLetter: (body, properties) => publish(deadLetterQueue(source), body, properties),
    repeat(work) {
      let isEnded = false
      const isOver = async () => {
        if (!isEnded) await work()
        return isEnded
      }
      const loop = becomesTrue(isOver, { withinMs: Number.POSITIVE_INFINITY, everyMs: REPEAT_MS })
      ends.push(async () => {
        isEnded = true
        await loop
      })
    },
    faultBegins() {
      begunAtMs = performance.now()
    },
    scaledMs: (ms) => ms / factor,
    onEnd: (end) => void ends.push(end),
  }
  return {
    place,
    get begunAtMs() {
      return begunAtMs
    },
    async end() {
      for (const end of ends.splice(0).reverse()) await end()
    },
  }
}

/** 60 s: each takes seconds, and a message that crashes three processes half a minute on a busy machine. */
const SOON = { withinMs: 60_000 }

/** Resolves when the queue of the place is empty. */
export async function handled({ addresses: { channel }, source }: Place): Promise<void> {
  const isEmpty = async () => (await channel.checkQueue(source)).messageCount === 0
  await until(`${source} is empty`, isEmpty, SOON)
}

/** Resolves when the server has this number of open dead letters of the source. */
export async function ingested({ client, source }: Place, count: number): Promise<void> {
  const hasAll = async () => {
    const { sources } = await client.call('listSources', {})
    return (sources.find((one) => one.source === source)?.open ?? 0) >= count
  }
  await until(`${count} dead letters of ${source}`, hasAll, SOON)
}

/** Mutes the groups of the source, because they are known now, and discards their dead letters. */
export async function triaged({ client, source }: Place): Promise<void> {
  const { groups } = await client.call('listGroups', { query: { sources: [source] } })
  for (const { id, openCount } of groups) {
    const params = { id }
    const { etag = '' } = await client.ask('getGroup', { params })
    await client.call('changeGroup', { params, ifMatch: etag, body: { state: 'muted' } })
    if (openCount > 0) await client.call('discard', { body: { group: id } })
  }
}
