import type { Socket } from 'node:net'
import { setTimeout as after } from 'node:timers/promises'
import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib'
import type { HistoryWriter } from '../history.ts'
import { bodyOf, type PlannedMessage } from '../message.ts'

export interface ProducerOptions {
  readonly urls: readonly string[]
  readonly queue: string
  readonly messages: readonly PlannedMessage[]
  readonly ratePerSecond: number
  readonly history: HistoryWriter
}

/** 200 unconfirmed at once: what one lost connection may leave unknown. */
const WINDOW = 200
const TICK_MS = 20
/** 500 ms after a refusal: the queue has no leader at the moment, and more would be refused as well. */
const BACK_OFF_MS = 500
/** 15 s without a confirm: the node behind this connection has no majority any more. */
const STALLED_MS = 15_000

interface Session {
  readonly connection: ChannelModel
  readonly channel: ConfirmChannel
  isOpen: boolean
}

/**
 * Publishes every message once, confirmed, and writes down what the broker said. A message whose
 * answer never came is not sent again: the checker wants to know what became of it.
 */
export async function produce(options: ProducerOptions): Promise<void> {
  const { messages, ratePerSecond } = options
  const startedAt = performance.now()
  let next = 0
  let session: Session | undefined
  const pending = nothingPending()
  while (next < messages.length || pending.size > 0) {
    if (session === undefined || !session.isOpen) session = await open(options.urls)
    const due = ((performance.now() - startedAt) / 1_000) * ratePerSecond
    while (next < Math.min(messages.length, due) && pending.hasRoom() && session.isOpen) {
      send(session, messages[next] as PlannedMessage, options, pending)
      next += 1
    }
    if (pending.stalledMs() > STALLED_MS) socketOf(session.connection).destroy()
    await after(TICK_MS)
  }
  await session?.connection.close().catch(() => undefined)
}

/** What has been sent and not answered, and whether more may be sent. */
interface Pending {
  readonly size: number
  hasRoom(): boolean
  stalledMs(): number
  add(id: string): void
  answered(id: string, isRefused: boolean): void
}

function nothingPending(): Pending {
  const ids = new Set<string>()
  let changedAt = performance.now()
  let refusedAt = Number.NEGATIVE_INFINITY
  return {
    get size() {
      return ids.size
    },
    hasRoom: () => ids.size < WINDOW && performance.now() - refusedAt > BACK_OFF_MS,
    stalledMs: () => (ids.size === 0 ? 0 : performance.now() - changedAt),
    add(id) {
      if (ids.size === 0) changedAt = performance.now()
      ids.add(id)
    },
    answered(id, isRefused) {
      ids.delete(id)
      changedAt = performance.now()
      if (isRefused) refusedAt = changedAt
    },
  }
}

function send(
  session: Session,
  message: PlannedMessage,
  { queue, history }: ProducerOptions,
  pending: Pending,
): void {
  const { id, kind } = message
  history.write({ what: 'attempted', id, kind })
  pending.add(id)
  session.channel.sendToQueue(
    queue,
    bodyOf(message),
    { messageId: id, persistent: true, contentType: 'application/json' },
    (error: unknown) => {
      // The end of the channel says nothing about the message; a refusal does.
      const isRefused = error !== null && session.isOpen
      pending.answered(id, isRefused)
      if (error === null) history.write({ what: 'acknowledged', id })
      else if (isRefused) history.write({ what: 'refused', id })
    },
  )
}

/** Patient: the node may be restarting. */
async function open(urls: readonly string[]): Promise<Session> {
  for (let attempt = 0; ; attempt++) {
    try {
      const connection = await connect(`${urls[attempt % urls.length]}?heartbeat=5`, {
        timeout: 5_000,
      })
      return await sessionOn(connection)
    } catch {
      await after(200)
    }
  }
}

async function sessionOn(connection: ChannelModel): Promise<Session> {
  connection.on('error', () => undefined)
  const channel = await connection.createConfirmChannel()
  const session: Session = { connection, channel, isOpen: true }
  // First of the listeners: those of amqplib then report what was unconfirmed.
  const closed = () => {
    session.isOpen = false
  }
  channel.prependListener('close', closed)
  channel.on('error', closed)
  connection.on('close', closed)
  return session
}

/** amqplib does not name the socket in its types. */
function socketOf({ connection }: ChannelModel): Socket {
  return (connection as unknown as { stream: Socket }).stream
}
