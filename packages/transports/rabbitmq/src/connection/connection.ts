import { unescape } from 'node:querystring'
import { isRedriveError, RedriveError } from '@redrive/core'
import { withTimeout } from '@redrive/runtime/internal'
import type { Channel, ChannelModel } from 'amqplib'
import { socketOf } from './socket.ts'

/** 100 ms before the first reconnect, then doubled. A broker node that restarts is back in seconds. */
const WAIT_BASE_MS = 100
/** 5 s: the longest wait between two attempts, so a recovered broker is used soon. */
const WAIT_CAP_MS = 5_000

export interface ConnectionOptions<C extends Channel> {
  readonly urls: readonly string[]
  readonly connect: (url: string) => Promise<ChannelModel>
  /** Opens and prepares the channel; called again after every lost connection. */
  readonly prepare: (connection: ChannelModel) => Promise<C>
  /** Called when the channel is ready, the first time and after each reconnect. */
  readonly onReady?: (channel: C) => void
  /** Called when the channel is lost, with every unacknowledged delivery on it. */
  readonly onLost: (error: unknown) => void
}

export interface Session<C extends Channel> {
  readonly connection: ChannelModel
  readonly channel: C
}

/**
 * One connection with one channel that reconnects. When either of the two breaks, both are replaced.
 * A channel closes only after protocol errors, which are rare, and one recovery path is easier to test.
 */
export class ManagedConnection<C extends Channel> {
  readonly #options: ConnectionOptions<C>
  #session: Session<C> | undefined
  #nextUrl = 0
  #failures = 0
  #readyAt = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #opening: Promise<void> | undefined
  readonly #waiting = new Set<(session: Session<C>) => void>()

  constructor(options: ConnectionOptions<C>) {
    this.#options = options
  }

  get channel(): C | undefined {
    return this.#session?.channel
  }

  get connection(): ChannelModel | undefined {
    return this.#session?.connection
  }

  /** Returns the session, or waits until it is back; rejects after `withinMs`. */
  whenReady(withinMs: number): Promise<Session<C>> {
    if (this.#session !== undefined) return Promise.resolve(this.#session)
    if (this.#isClosed)
      return Promise.reject(
        new RedriveError(
          'CLOSED',
          'The RabbitMQ connection is closed. Create a new consumer, source or sink.',
        ),
      )
    return new Promise((resolve, reject) => {
      const ready = (session: Session<C>) => {
        clearTimeout(timer)
        this.#waiting.delete(ready)
        resolve(session)
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(ready)
        const message = `The connection to RabbitMQ was not restored within ${withinMs} ms. Check that the broker runs and is reachable.`
        reject(new RedriveError('UNREACHABLE', message))
      }, withinMs)
      this.#waiting.add(ready)
    })
  }

  /** Opens the first connection: tries every address once, and rejects when all of them fail. */
  open(): Promise<void> {
    this.#opening ??= this.#openFirst()
    return this.#opening
  }

  async #openFirst(): Promise<void> {
    const problems: unknown[] = []
    for (const _ of this.#options.urls) {
      try {
        await this.#establish()
        return
      } catch (error) {
        problems.push(error)
        this.#nextUrl += 1
      }
    }
    this.#opening = undefined
    throw problems.find((problem) => isRedriveError(problem)) ?? problems.at(-1)
  }

  async #establish(): Promise<void> {
    const { urls, prepare } = this.#options
    const url = urls[this.#nextUrl % urls.length] as string
    const connection = await this.#connect(url)
    let session: Session<C> | undefined
    let cause: unknown
    let isClosed = false
    const recordCause = (error: unknown) => {
      cause ??= error
    }
    const onClose = () => {
      isClosed = true
      if (session !== undefined) this.#lost(session, cause)
    }
    // Without a listener, an `error` event would end the process. `close` always follows it. Both are
    // attached first: the close may arrive in the same packet as the answer to our last request.
    connection.on('error', recordCause)
    connection.on('close', (error) => {
      recordCause(error)
      onClose()
    })
    try {
      const channel = await answered(prepare(connection))
      channel.on('error', recordCause)
      channel.on('close', onClose)
      if (isClosed)
        throw new Error('The broker closed the connection right after it was opened.', { cause })
      if (this.#isClosed)
        throw new RedriveError(
          'CLOSED',
          'The RabbitMQ connection was closed while it was being opened.',
        )
      session = { connection, channel }
    } catch (error) {
      void abandon(connection)
      throw error
    }
    this.#session = session
    this.#readyAt = performance.now()
    this.#options.onReady?.(session.channel)
    for (const ready of [...this.#waiting]) ready(session)
  }

  async #connect(url: string): Promise<ChannelModel> {
    try {
      return await this.#options.connect(url)
    } catch (cause) {
      throw isVhostRefused(cause) ? vhostRefused(url, cause) : unreachable(url, cause)
    }
  }

  /** Replaces a connection that no longer works although no `close` event arrived. */
  reset(channel: C, error: unknown): void {
    if (this.#session?.channel === channel) this.#lost(this.#session, error)
  }

  #lost(session: Session<C>, error: unknown): void {
    if (this.#session !== session) return
    this.#session = undefined
    // A connection that was lost right away counts as a failed attempt: the next wait is longer.
    if (performance.now() - this.#readyAt > WAIT_CAP_MS) this.#failures = 0
    void abandon(session.connection)
    this.#options.onLost(error)
    this.#reconnect()
  }

  #reconnect(): void {
    if (this.#isClosed) return
    const waitMs = Math.min(WAIT_CAP_MS, WAIT_BASE_MS * 2 ** this.#failures)
    this.#failures += 1
    this.#nextUrl += 1
    // Jitter: processes that lost the broker at the same time must not all reconnect at the same time.
    this.#timer = setTimeout(() => void this.#tryAgain(), waitMs * (0.5 + Math.random() / 2))
  }

  async #tryAgain(): Promise<void> {
    try {
      await this.#establish()
    } catch {
      // Not reported here: until it works again, hand-offs stay unknown and nothing is received.
      this.#reconnect()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const session = this.#session
    this.#session = undefined
    if (session !== undefined) await abandon(session.connection, session.channel)
  }
}

/**
 * 15 s: longer than any leader election of a healthy cluster. A node that lost contact with the others
 * may never answer a request, although its heartbeats continue.
 */
const ANSWER_MS = 15_000

/** Returns the broker's answer, or rejects after 15 s so that the caller can use another node. */
export function answered<T>(work: Promise<T>): Promise<T> {
  return withTimeout(work, ANSWER_MS, () => {
    throw new RedriveError(
      'UNREACHABLE',
      `RabbitMQ did not respond to a request within ${ANSWER_MS / 1000} s. Check the nodes of the broker.`,
    )
  })
}

/** 2 s to close: a broker that does not answer must not keep the process from ending. */
export const CLOSE_MS = 2_000

/**
 * Closes a channel. The promise of the client library stays pending when the connection breaks while
 * closing; the `close` event of the channel still arrives.
 */
export function closeChannel(channel: Channel): Promise<void> {
  const { promise: isGone, resolve } = Promise.withResolvers<void>()
  channel.once('close', resolve)
  return Promise.race([channel.close(), isGone])
}

/** Closes a connection that is no longer needed; destroys its socket when the close does not finish. */
async function abandon(connection: ChannelModel, channel?: Channel): Promise<void> {
  // An error is ignored: a connection that breaks while closing is closed as well.
  await withTimeout(
    Promise.allSettled([closeInOrder(connection, channel)]),
    CLOSE_MS,
    () => undefined,
  )
  // With an error: without one, the client library would not notice and would wait for heartbeats.
  socketOf(connection).destroy(new Error('The connection was abandoned.'))
}

/** Closes the channel first: frames written to it might otherwise not be sent before the connection closes. */
async function closeInOrder(connection: ChannelModel, channel: Channel | undefined): Promise<void> {
  if (channel !== undefined) await closeChannel(channel)
  await connection.close()
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

/**
 * Returns whether the broker refused to open the vhost. The client library drops the code and the words of the broker,
 * and only this text remains.
 */
const isVhostRefused = (cause: unknown): boolean =>
  messageOf(cause).startsWith('Expected ConnectionOpenOk; got <ConnectionClose')

const vhostRefused = (url: string, cause: unknown) =>
  new RedriveError(
    'UNREACHABLE',
    `RabbitMQ at ${addressIn(url)} does not open the vhost "${vhostIn(url)}". It does not exist, the user has no permissions in it, or it has reached its limit of connections. Check the path of the address, which names the vhost. Then create the vhost (rabbitmqctl add_vhost) or give the user permissions (rabbitmqctl set_permissions).`,
    { cause },
  )

const unreachable = (url: string, cause: unknown) =>
  new RedriveError(
    'UNREACHABLE',
    `Cannot connect to RabbitMQ at ${addressIn(url)}: ${messageOf(cause)}. Check the address, the credentials and that the broker runs.`,
    { cause },
  )

/** Returns the vhost as the client library reads it. */
const vhostIn = (url: string): string =>
  (URL.canParse(url) && unescape(new URL(url).pathname.slice(1))) || '/'

/** Returns the address without the parts that may contain credentials. */
function addressIn(url: string): string {
  if (!URL.canParse(url)) return 'the given address'
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}
