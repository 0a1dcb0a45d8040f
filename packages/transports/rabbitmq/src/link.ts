import { isRedriveError, RedriveError } from '@redrive/core'
import { withTimeout } from '@redrive/runtime'
import type { Channel, ChannelModel } from 'amqplib'
import { socketOf } from './socket.ts'

/** 100 ms, doubling: a broker node that restarts is back in seconds. */
const WAIT_BASE_MS = 100
/** 5 s: how long a broker that works again waits for us at most. */
const WAIT_CAP_MS = 5_000

export interface LinkParts<C extends Channel> {
  readonly urls: readonly string[]
  readonly connect: (url: string) => Promise<ChannelModel>
  /** Opens the channel and makes it ready; repeated after every loss. */
  readonly prepare: (connection: ChannelModel) => Promise<C>
  /** The channel is ready, the first time or again. */
  readonly onReady?: (channel: C) => void
  /** The channel is gone, and with it everything that was on it. */
  readonly onLost: (error: unknown) => void
}

export interface Session<C extends Channel> {
  readonly connection: ChannelModel
  readonly channel: C
}

/**
 * One connection with one channel, kept alive. Whichever of the two breaks, both are made anew: a
 * channel dies only of protocol errors, which are rare, and one way back is easier to trust than two.
 */
export class Link<C extends Channel> {
  readonly #parts: LinkParts<C>
  #session: Session<C> | undefined
  #nextUrl = 0
  #failures = 0
  #readyAt = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #opening: Promise<void> | undefined
  readonly #waiting = new Set<(session: Session<C>) => void>()

  constructor(parts: LinkParts<C>) {
    this.#parts = parts
  }

  get channel(): C | undefined {
    return this.#session?.channel
  }

  get connection(): ChannelModel | undefined {
    return this.#session?.connection
  }

  /** The session, now or as soon as it is back; rejects when that takes too long. */
  whenReady(withinMs: number): Promise<Session<C>> {
    if (this.#session !== undefined) return Promise.resolve(this.#session)
    if (this.#isClosed) return Promise.reject(new RedriveError('CLOSED', 'It is closed.'))
    return new Promise((resolve, reject) => {
      const ready = (session: Session<C>) => {
        clearTimeout(timer)
        this.#waiting.delete(ready)
        resolve(session)
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(ready)
        reject(new RedriveError('UNREACHABLE', 'The connection to RabbitMQ is down.'))
      }, withinMs)
      this.#waiting.add(ready)
    })
  }

  /** The first time: every address is tried once, and a refusal is the caller's to see. */
  open(): Promise<void> {
    this.#opening ??= this.#openFirst()
    return this.#opening
  }

  async #openFirst(): Promise<void> {
    const problems: unknown[] = []
    for (const _ of this.#parts.urls) {
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
    const { urls, prepare } = this.#parts
    const url = urls[this.#nextUrl % urls.length] as string
    const connection = await this.#connect(url)
    let session: Session<C> | undefined
    let cause: unknown
    let isOver = false
    const note = (error: unknown) => {
      cause ??= error
    }
    const over = () => {
      isOver = true
      if (session !== undefined) this.#lost(session, cause)
    }
    // Without a listener an `error` would end the process. `close` always follows it. From the first
    // moment on: the end may come in the same packet as the answer to our last request.
    connection.on('error', note)
    connection.on('close', (error) => {
      note(error)
      over()
    })
    try {
      const channel = await answered(prepare(connection))
      channel.on('error', note)
      channel.on('close', over)
      if (isOver) throw new Error('The broker ended the connection at once.', { cause })
      if (this.#isClosed) throw new RedriveError('CLOSED', 'Closed while connecting.')
      session = { connection, channel }
    } catch (error) {
      void abandon(connection)
      throw error
    }
    this.#session = session
    this.#readyAt = performance.now()
    this.#parts.onReady?.(session.channel)
    for (const ready of [...this.#waiting]) ready(session)
  }

  async #connect(url: string): Promise<ChannelModel> {
    try {
      return await this.#parts.connect(url)
    } catch (cause) {
      throw new RedriveError(
        'UNREACHABLE',
        `RabbitMQ at ${addressIn(url)} does not answer: ${messageOf(cause)}. Check the address, the credentials and that the broker runs.`,
        { cause },
      )
    }
  }

  /** For a channel that turned out to be dead without having said so. */
  reset(channel: C, error: unknown): void {
    if (this.#session?.channel === channel) this.#lost(this.#session, error)
  }

  #lost(session: Session<C>, error: unknown): void {
    if (this.#session !== session) return
    this.#session = undefined
    // One that was lost at once was as good as none: the next wait is longer.
    if (performance.now() - this.#readyAt > WAIT_CAP_MS) this.#failures = 0
    void abandon(session.connection)
    this.#parts.onLost(error)
    this.#reconnect()
  }

  #reconnect(): void {
    if (this.#isClosed) return
    const waitMs = Math.min(WAIT_CAP_MS, WAIT_BASE_MS * 2 ** this.#failures)
    this.#failures += 1
    this.#nextUrl += 1
    // Jitter: a fleet that lost its broker together must not come back together.
    this.#timer = setTimeout(() => void this.#tryAgain(), waitMs * (0.5 + Math.random() / 2))
  }

  async #tryAgain(): Promise<void> {
    try {
      await this.#establish()
    } catch {
      // Told by what it causes: hand-offs stay unknown and nothing is received until it works again.
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
 * 15 s: beyond any election of a healthy cluster. A node that lost sight of the others can keep a
 * request for ever, and its heartbeats go on all the while.
 */
const ANSWER_MS = 15_000

/** What the broker says, or a rejection when it says nothing: whoever hangs there is better off elsewhere. */
export function answered<T>(work: Promise<T>): Promise<T> {
  return withTimeout(work, ANSWER_MS, () => {
    throw new RedriveError('UNREACHABLE', `RabbitMQ said nothing for ${ANSWER_MS} ms.`)
  })
}

/** 2 s for a goodbye: a broker that does not answer must not keep a process from ending. */
export const CLOSE_MS = 2_000

/** The client library does not answer when the connection breaks meanwhile; the channel says so itself. */
export function closeChannel(channel: Channel): Promise<void> {
  const { promise: isGone, resolve } = Promise.withResolvers<void>()
  channel.once('close', resolve)
  return Promise.race([channel.close(), isGone])
}

/** A connection that nobody needs any more; it may be half dead already, and then it is cut. */
async function abandon(connection: ChannelModel, channel?: Channel): Promise<void> {
  // An error is ignored: a connection that breaks while it is closed is gone as well.
  await withTimeout(Promise.allSettled([goodbye(connection, channel)]), CLOSE_MS, () => undefined)
  // With an error: without one the client library would not hear of it, and wait for heartbeats.
  socketOf(connection).destroy(new Error('The connection was given up.'))
}

/** The channel first: what was written to it might not leave before the connection's own end. */
async function goodbye(connection: ChannelModel, channel: Channel | undefined): Promise<void> {
  if (channel !== undefined) await closeChannel(channel)
  await connection.close()
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

/** Without anything that may be a part of the credentials. */
function addressIn(url: string): string {
  if (!URL.canParse(url)) return 'the given address'
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}
