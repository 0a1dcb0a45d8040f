import type { Socket } from 'node:net'
import { setTimeout as after } from 'node:timers/promises'
import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib'
import type { HistoryWriter } from '../evidence/history.ts'
import { bodyOf, type PlannedMessage } from '../evidence/message.ts'
import { repeated } from '../harness/wait.ts'

export interface ProducerOptions {
  readonly urls: readonly string[]
  readonly queue: string
  readonly messages: readonly PlannedMessage[]
  readonly ratePerSecond: number
  readonly history: HistoryWriter
}

/** 200 unconfirmed messages: the number that one lost connection may leave unknown. */
const WINDOW = 200
const TICK_MS = 20
/**
 * 500 ms after a rejection: the queue currently has no leader, and more messages would be rejected
 * as well.
 */
const BACK_OFF_MS = 500
/** 15 s without a confirm: the node of this connection has lost its majority. */
const STALLED_MS = 15_000

interface Session {
  readonly connection: ChannelModel
  readonly channel: ConfirmChannel
  isOpen: boolean
}

/**
 * Publishes every message once with confirms and records the broker's response. Messages without a
 * response are not sent again, because the checker must find out their outcome.
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

/** Messages without a response, and whether more may be sent. */
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
      // The end of the channel does not reveal the outcome of the message; a rejection does.
      const isRefused = error !== null && session.isOpen
      pending.answered(id, isRefused)
      if (error === null) history.write({ what: 'acknowledged', id })
      else if (isRefused) history.write({ what: 'refused', id })
    },
  )
}

/** 2 min: a node that was killed is back by then. */
const OPEN = { withinMs: 120_000, everyMs: 200 }

/** Opens a connection to one node after the other, because a node may be restarting. */
function open(urls: readonly string[]): Promise<Session> {
  let attempt = 0
  return repeated(async () => {
    const url = `${urls[attempt++ % urls.length]}?heartbeat=5`
    return sessionOn(await connect(url, { timeout: 5_000 }))
  }, OPEN)
}

async function sessionOn(connection: ChannelModel): Promise<Session> {
  connection.on('error', () => undefined)
  const channel = await connection.createConfirmChannel()
  const session: Session = { connection, channel, isOpen: true }
  // Added as the first listener. Those of amqplib then report the unconfirmed messages.
  const closed = () => {
    session.isOpen = false
  }
  channel.prependListener('close', closed)
  channel.on('error', closed)
  connection.on('close', closed)
  return session
}

/** Returns the socket, which the types of amqplib do not contain. */
function socketOf({ connection }: ChannelModel): Socket {
  return (connection as unknown as { stream: Socket }).stream
}
