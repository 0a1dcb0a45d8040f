import { randomBytes, randomUUID } from 'node:crypto'
import { encodeHeaders, FIRST_CYCLE } from '@redrive/core'
import { topologyOf } from '@redrive/rabbitmq'
import { type ChannelModel, type ConfirmChannel, connect, type GetMessage } from 'amqplib'
import type { Pool } from 'pg'
import { until } from '../../harness/wait.ts'

/** A dead letter that a person with write access to the broker creates. */
export interface Forged {
  readonly id?: string
  readonly key?: string
  readonly body?: string
  readonly type?: string
  readonly contentType?: string
  readonly code?: string
  readonly message?: string
  /** The signature; equal for dead letters of one group. */
  readonly signature?: string
  /** The origin it claims. Default: the queue. */
  readonly origin?: string
  readonly headers?: Readonly<Record<string, unknown>>
  /** The replay that it claims to be. Default: none. */
  readonly replayId?: string
}

/** More settings in the config, by source. */
type Special = Readonly<Record<string, object>>

/** The queues of the sources. The attacker can write to them. */
export class Queues {
  readonly #connection: ChannelModel
  readonly #channel: ConfirmChannel
  readonly #url: string
  readonly #queues: ReadonlyMap<string, string>
  readonly #special: Special

  static async declare(
    url: string,
    sources: readonly string[],
    special: Special = {},
  ): Promise<Queues> {
    const connection = await connect(url)
    const channel = await connection.createConfirmChannel()
    const suffix = randomBytes(4).toString('hex')
    const named = sources.map((source, at) => [source, `faults-attack-${at}-${suffix}`] as const)
    const made = new Queues(url, connection, channel, new Map(named), special)
    for (const [, queue] of named) {
      for (const { name, arguments: args } of specsOf(queue)) {
        await channel.assertQueue(name, { durable: true, arguments: args })
      }
    }
    return made
  }

  private constructor(
    url: string,
    connection: ChannelModel,
    channel: ConfirmChannel,
    queues: ReadonlyMap<string, string>,
    special: Special,
  ) {
    this.#url = url
    this.#connection = connection
    this.#channel = channel
    this.#queues = queues
    this.#special = special
  }

  /** Returns the value of `sources` in the config. */
  config(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(
      [...this.#queues].map(([source, queue]) => [
        source,
        {
          rabbitmq: { url: this.#url, queue },
          handler: source,
          extract: { order: '/order' },
          ...this.#special[source],
        },
      ]),
    )
  }

  /** Returns the queue of a source. */
  of(source: string): string {
    return this.#queues.get(source) ?? ''
  }

  /** Writes dead letters and resolves with their catalog ids after they are ingested. */
  async kill(pool: Pool, source: string, forged: readonly Forged[]): Promise<readonly string[]> {
    const ids = forged.map(({ id }) => id ?? randomUUID())
    for (const [at, one] of forged.entries()) this.#write(source, { ...one, id: ids[at] ?? '' })
    await this.#channel.waitForConfirms()
    let found: readonly string[] = []
    const isThere = async () => {
      const { rows } = await pool.query<{ id: string }>(FOUND, [ids])
      found = rows.map(({ id }) => id)
      return found.length >= ids.length
    }
    await until('the dead letters are in the catalog', isThere, { withinMs: 30_000, everyMs: 50 })
    return found
  }

  /** Writes a dead letter that must never be a separate dead letter in the catalog. */
  async send(source: string, forged: Forged & { readonly id: string }): Promise<void> {
    this.#write(source, forged)
    await this.#channel.waitForConfirms()
  }

  #write(source: string, forged: Forged & { readonly id: string }): void {
    const queue = this.of(source)
    const { content, properties } = messageOf(queue, forged)
    this.#channel.sendToQueue(topologyOf(queue, 'quorum').deadLetters.name, content, properties)
  }

  /** Writes a text to any queue. */
  async put(queue: string, text: string): Promise<void> {
    this.#channel.sendToQueue(queue, Buffer.from(text), { persistent: true })
    await this.#channel.waitForConfirms()
  }

  /** Takes a message that came back to the queue. */
  async take(queue: string): Promise<GetMessage | undefined> {
    const message = await this.#channel.get(queue, { noAck: true })
    return message === false ? undefined : message
  }

  async empty(queue: string): Promise<void> {
    await this.#channel.purgeQueue(queue)
  }

  async end(): Promise<void> {
    for (const queue of this.#queues.values()) {
      for (const { name } of specsOf(queue)) await this.#channel.deleteQueue(name)
    }
    await this.#connection.close()
  }
}

export const newSignature = (): string => `1-${randomBytes(8).toString('hex')}`

const FOUND = `
select id from redrive_catalog.dead_letter where message_id = any($1)
  order by array_position($1, message_id)`

function specsOf(queue: string) {
  const { source, deadLetters, later } = topologyOf(queue, 'quorum')
  return [source, deadLetters, ...later]
}

function messageOf(queue: string, forged: Forged & { readonly id: string }) {
  const { id, key = id, body = '{"order":1}', origin = queue, code = 'E1' } = forged
  const { message = 'card declined', type = 'order.placed' } = forged
  const at = Date.now() - 1_000
  const { signature = newSignature() } = forged
  const failure = { class: 'business', signature, code, type: 'Declined', message } as const
  const record = { number: 1, at, waitedMs: 0, ...failure, counted: true }
  const { replayId } = forged
  const number = replayId === undefined ? 1 : 2
  const cycle = { ...FIRST_CYCLE, number, attempts: 1, firstFailedAt: at, history: [record] }
  const fields = { id, key, source: origin, replayId, cycle, reason: 'not_retryable' }
  const headers = { ...encodeHeaders(fields).headers, ...forged.headers }
  const { contentType = 'application/json' } = forged
  return {
    content: Buffer.from(body),
    properties: { persistent: true, messageId: id, type, contentType, headers },
  }
}
