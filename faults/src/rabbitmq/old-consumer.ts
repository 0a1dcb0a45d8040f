/**
 * A consumer as many programs have it: plain amqplib, one acknowledgement per message, and a failed
 * message goes back to the queue. It uses no code of Redrive.
 */
import { createHash } from 'node:crypto'
import { setTimeout as after } from 'node:timers/promises'
import { type Channel, connect, type ConsumeMessage } from 'amqplib'
import { countRun, inboxOf, openDatabase } from '../harness/effects.ts'
import { openHistory } from '../evidence/history.ts'
import type { Body } from '../evidence/message.ts'
import { ready } from '../harness/process.ts'

export interface OldConsumerOptions {
  readonly name: string
  readonly folder: string
  readonly run: string
  readonly databaseUrl: string
  readonly urls: readonly string[]
  readonly queues: readonly string[]
}

const PREFETCH = 20
const WORK_MS = 5

const options = JSON.parse(process.argv[2] ?? '') as OldConsumerOptions
const { name, run, urls, queues } = options
const history = openHistory(options.folder, name)
const pool = openDatabase(options.databaseUrl, { isInHurry: true })
const inbox = inboxOf({
  pool,
  run,
  onSuccess: (id, isNew) => history.write({ what: 'effect', id, isNew }),
})
const connection = await connect(urls[0] ?? '')
const running = new Set<Promise<void>>()

async function handle(channel: Channel, message: ConsumeMessage): Promise<void> {
  const body = JSON.parse(message.content.toString()) as Body
  const { id } = body
  history.write({ what: 'handler_started', id, attempt: 1 })
  await after(WORK_MS)
  if (body.kind === 'flaky' && (await countRun(pool, run, id)) <= body.failures) {
    history.write({ what: 'failed', id, attempt: 1 })
    channel.nack(message, false, true)
    return
  }
  // As the new consumers write it: a message that both receive must not look like two with one key.
  const fingerprint = createHash('sha256').update(message.content).digest('base64url')
  const entry = { key: id, fingerprint, consumer: name }
  await inbox.handle(entry, async (effects) => effects.add(name))
  channel.ack(message)
}

async function consume(queue: string): Promise<Channel> {
  const channel = await connection.createChannel()
  await channel.prefetch(PREFETCH)
  await channel.consume(queue, (message) => {
    if (message === null) return
    const work = handle(channel, message)
    running.add(work)
    void work.finally(() => running.delete(work))
  })
  return channel
}

const channels = await Promise.all(queues.map(consume))
history.write({ what: 'ready' })

/** Closes the channels: what was not acknowledged goes back to the queue. */
async function stop(): Promise<void> {
  await Promise.all(running)
  for (const channel of channels) await channel.close()
  await connection.close()
  await pool.end()
  process.exit(0)
}
ready((request) => {
  if (request === 'stop') void stop()
})
