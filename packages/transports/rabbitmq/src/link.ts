import { RedriveError } from '@redrive/core'
import type { Channel, ChannelModel } from 'amqplib'

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
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
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
  async open(): Promise<void> {
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
    throw problems.find((problem) => problem instanceof RedriveError) ?? problems.at(-1)
  }

  async #establish(): Promise<void> {
    const { urls, prepare } = this.#parts
    const url = urls[this.#nextUrl % urls.length] as string
    const connection = await this.#connect(url)
    // Without a listener an `error` would end the process. `close` always follows it.
    let cause: unknown
    const note = (error: unknown) => {
      cause ??= error
    }
    connection.on('error', note)
    try {
      const channel = await prepare(connection)
      channel.on('error', note)
      const session = { connection, channel }
      connection.on('close', (error) => this.#lost(session, cause ?? error))
      channel.on('close', () => this.#lost(session, cause))
      if (this.#isClosed) throw new RedriveError('CLOSED', 'Closed while connecting.')
      this.#session = session
      this.#failures = 0
      this.#parts.onReady?.(channel)
      for (const ready of [...this.#waiting]) ready(session)
    } catch (error) {
      abandon(connection)
      throw error
    }
  }

  async #connect(url: string): Promise<ChannelModel> {
    try {
      return await this.#parts.connect(url)
    } catch (cause) {
      throw new RedriveError(
        'UNREACHABLE',
        `RabbitMQ at ${withoutPassword(url)} does not answer: ${messageOf(cause)}. Check the address, the credentials and that the broker runs.`,
        { cause },
      )
    }
  }

  #lost(session: Session<C>, error: unknown): void {
    if (this.#session !== session) return
    this.#session = undefined
    abandon(session.connection)
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
    if (session !== undefined) await bounded(goodbye(session), CLOSE_MS)
  }
}

/** 2 s for a goodbye: a broker that does not answer must not keep a process from ending. */
const CLOSE_MS = 2_000

/** The channel first: what was written to it leaves before, and might not before the connection's own end. */
async function goodbye({ channel, connection }: Session<Channel>): Promise<void> {
  await channel.close()
  await connection.close()
}

/** Waits for it, but not longer than that; whether it failed is for its owner to know. */
export async function bounded(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  // A connection that breaks while we say goodbye is gone as well.
  await Promise.race([work.catch(() => undefined), enough])
  clearTimeout(timer)
}

/** A connection that nobody needs any more; it may be half dead already, and then refuses. */
function abandon(connection: ChannelModel): void {
  connection.close().catch(() => undefined)
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//')
}
