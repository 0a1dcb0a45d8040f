// Measures how fast a run without a rate limit is published. It compares with a loop that publishes
// the same messages and waits for the broker's confirm of each.
import { type Catalog, catalog, migrate, type Replayer } from '@redrive/catalog'
import { rabbitmqSource } from '@redrive/rabbitmq'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { ConfirmChannel } from 'amqplib'
import type { Candidate } from '../harness.ts'
import { emptied, ownDatabase, undisturbed } from '../postgres/database.ts'
import { brokerUrl, connection, ownQueue } from '../rabbitmq/broker.ts'
import { APART_MS, letterOf, listed, SOURCE } from './letters.ts'

const QUEUE = { durable: true, arguments: { 'x-queue-type': 'quorum' } }
/** Two days ago, so that none is in the future. */
const START = Date.now() - 172_800_000

/** The time of the first failure of a dead letter, a bit earlier. */
const startOf = (number: number) => START + number * APART_MS

export const lettersTo = (queue: string, count: number): readonly DrainedDeadLetter[] =>
  Array.from({ length: count }, (_, number) => ({ ...letterOf(number, START), origin: queue }))

/** A separate queue on the broker. */
export interface Target {
  readonly url: string
  readonly queue: string
  readonly channel: ConfirmChannel
  empty(): Promise<unknown>
  expect(count: number): Promise<void>
  close(): Promise<void>
}

/** Opens a separate queue on the broker; it is emptied before each sample. */
export async function ownTarget(): Promise<Target> {
  const url = await brokerUrl()
  const link = await connection(url)
  const channel = await link.createConfirmChannel()
  const queue = ownQueue()
  await channel.assertQueue(queue, QUEUE)
  return {
    url,
    queue,
    channel,
    empty: () => channel.purgeQueue(queue),
    async expect(count: number) {
      const { messageCount } = await channel.checkQueue(queue)
      if (messageCount !== count)
        throw new Error(`${messageCount} in the queue instead of ${count}`)
    },
    async close() {
      await channel.deleteQueue(queue)
      await link.close()
    },
  }
}

/** Publishes in sequence, or several concurrently. */
export async function bareLoop(name: string, atOnce: number): Promise<Candidate> {
  const target = await ownTarget()
  let letters: readonly DrainedDeadLetter[] = []
  return {
    name,
    async prepare(count) {
      letters = lettersTo(target.queue, count)
      await target.empty()
    },
    async run() {
      for (let at = 0; at < letters.length; at += atOnce) {
        const some = letters.slice(at, at + atOnce)
        await Promise.all(some.map((one) => published(target.channel, target.queue, one)))
      }
    },
    verify: (count) => target.expect(count),
    close: () => target.close(),
  }
}

function published(channel: ConfirmChannel, queue: string, letter: DrainedDeadLetter) {
  const { bytes, headers, id } = letter.delivery
  const options = { persistent: true, mandatory: true, messageId: id, headers }
  return new Promise<void>((resolve, reject) => {
    channel.sendToQueue(queue, Buffer.from(bytes), options, (error: unknown) =>
      error === null ? resolve() : reject(error as Error),
    )
  })
}

/** Emptied before each sample. */
export const TABLES: readonly string[] = [
  'dead_letter',
  'dead_letter_payload',
  'replay_item',
  'replay_run',
  'replay_rate',
]

/** Runs an approved replay without a canary at full speed; there is no consumer. */
export async function replayRun(name: string): Promise<Candidate> {
  const target = await ownTarget()
  const database = await ownDatabase()
  const { pool } = database
  await migrate(pool)
  const made = catalog({ pool })
  const source = rabbitmqSource({ url: target.url, queue: target.queue })
  const replayer = made.replays.replayer({ sources: [{ source, name: SOURCE }] })
  return {
    name,
    async prepare(count) {
      await undisturbed(pool)
      await emptied(pool, TABLES.map((table) => `redrive_catalog.${table}`).join(', '))
      await target.empty()
      await made.ingest(listed(lettersTo(target.queue, count)))
      await approvedRun(made)
      await pool.query('vacuum analyze redrive_catalog.replay_item, redrive_catalog.dead_letter')
    },
    run: (count) => publishedAll(replayer, count),
    verify: (count) => target.expect(count),
    async close() {
      await source.close()
      await target.close()
      await database.drop()
    },
  }
}

/** Plans and approves a run of the dead letters with these numbers. */
export async function approvedRun(
  made: Catalog,
  first = 0,
  end: number = Number.POSITIVE_INFINITY,
): Promise<void> {
  const before = end === Number.POSITIVE_INFINITY ? {} : { before: startOf(end) }
  const { id, hash } = await made.replays.plan({
    selection: { query: { after: startOf(first), ...before, sources: [SOURCE] } },
    by: 'bench',
    ratePerSecond: 10_000,
    canary: [],
    onUnconfirmed: 'continue',
    maxAge: '7d',
  })
  await made.replays.approve(id, { hash, by: 'another' })
}

async function publishedAll(replayer: Replayer, count: number): Promise<void> {
  for (let done = 0; done < count; ) {
    const turn = await replayer.turn()
    if (turn === undefined || turn.failed > 0)
      throw new Error(`The run stopped after ${done} items.`)
    done += turn.published
  }
}
