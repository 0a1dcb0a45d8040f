import {
  createInbox,
  type Msg,
  type NatsConnection,
  type Subscription,
} from '@nats-io/transport-node'

/** 1 s more than the server waits: after it, the end of the request was lost. */
const LATE_MS = 1_000
/** Statuses of the server that end a request without a problem: no message, end of the time, end of the batch. */
const USUAL: readonly number[] = [404, 408]
/** The server ends requests with this for many reasons. It does not describe them with numbers. */
const CONFLICT = 409
/** After these reasons the next request works. After others, such as an exceeded limit, it would fail again immediately. */
const MOVED = /^(Leadership Change|Server Shutdown)$/i

export interface PullOptions {
  readonly batch: number
  /** Time that the server waits for messages; 0: it answers immediately. */
  readonly waitMs: number
}

export interface PullResult {
  readonly count: number
  /** Why the server could not answer. */
  readonly problem: Error | undefined
}

/** Limits that an administrator can set for a consumer. The server rejects larger requests. */
export interface PullLimits {
  readonly leaseMs: number
  readonly maxBatch: number
  readonly maxWaitMs: number
}

export interface PulledConsumer extends PullLimits {
  readonly stream: string
  readonly consumer: string
}

interface PullEnd {
  /** The server sends no more messages for the request. */
  readonly isComplete: boolean
  readonly problem?: Error | undefined
}

interface Pull {
  left: number
  count: number
  readonly startedAt: number
  readonly end: (end: PullEnd) => void
}

/** The subscription for the answers to requests, one after the other. */
interface Channel {
  readonly inbox: string
  readonly subscription: Subscription
  /** Number of the last request: its status arrives on `<inbox>.<number>`. */
  number: number
  pull: Pull | undefined
}

/** Requests messages of one consumer, one request at a time. */
export class Puller {
  readonly #connection: NatsConnection
  readonly #consumer: PulledConsumer
  readonly #onMessage: (message: Msg, sentAfter: number) => void
  /** Channels of requests that ended here, while the server may still send messages for them. */
  readonly #late = new Map<Channel, NodeJS.Timeout>()
  #channel: Channel
  #open: Pull | undefined

  /** `onMessage` gets each message, and the earliest time at which the server can have sent it. */
  constructor(
    connection: NatsConnection,
    consumer: PulledConsumer,
    onMessage: (message: Msg, sentAfter: number) => void,
  ) {
    this.#connection = connection
    this.#consumer = consumer
    this.#onMessage = onMessage
    this.#channel = this.#openChannel()
  }

  /** The number of messages that the open request may still deliver. */
  get expected(): number {
    return this.#open?.left ?? 0
  }

  get isOpen(): boolean {
    return this.#open !== undefined
  }

  pull({ batch, waitMs }: PullOptions): Promise<PullResult> {
    const { stream, consumer, maxBatch, maxWaitMs } = this.#consumer
    const { promise, resolve } = Promise.withResolvers<PullResult>()
    const channel = this.#channel
    const size = Math.min(batch, maxBatch)
    const wait = Math.min(waitMs, maxWaitMs)
    const pull: Pull = {
      left: size,
      count: 0,
      startedAt: performance.now(),
      end: ({ isComplete, problem }) => {
        clearTimeout(timer)
        if (this.#open === pull) {
          this.#open = undefined
          if (!isComplete) this.#leave(channel)
          resolve({ count: pull.count, problem })
        } else if (isComplete && this.#late.has(channel)) this.#close(channel)
      },
    }
    const timer = setTimeout(() => pull.end({ isComplete: false }), wait + LATE_MS)
    this.#open = pull
    channel.pull = pull
    channel.number += 1
    const expiry = wait === 0 ? { no_wait: true } : { expires: wait * NANOS }
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`
    try {
      this.#connection.publish(subject, JSON.stringify({ batch: size, ...expiry }), {
        reply: `${channel.inbox}.${channel.number}`,
      })
    } catch (error) {
      pull.end({ isComplete: true, problem: error as Error })
    }
    return promise
  }

  #openChannel(): Channel {
    const inbox = createInbox()
    const channel: Channel = {
      inbox,
      number: 0,
      pull: undefined,
      subscription: this.#connection.subscribe(`${inbox}.*`, {
        callback: (_, message) => this.#receive(channel, message),
      }),
    }
    return channel
  }

  #receive({ inbox, number, pull }: Channel, message: Msg): void {
    const { headers, subject, reply } = message
    const code = headers?.code ?? 0
    if (pull === undefined) return
    if (code === 0 && reply !== undefined) {
      this.#onMessage(message, pull.startedAt)
      pull.count += 1
      pull.left -= 1
      if (pull.left === 0) pull.end({ isComplete: true })
    } else if (code !== ALIVE && subject === `${inbox}.${number}`)
      pull.end(endFor(code, headers?.description))
  }

  /**
   * Uses another channel from now on. A message that arrives on this one belongs to its last request, so its lease
   * begins with that. When the lease of its messages has ended, nothing useful can arrive.
   */
  #leave(channel: Channel): void {
    const timer = setTimeout(() => this.#close(channel), this.#consumer.leaseMs)
    this.#late.set(channel, timer.unref())
    if (!this.#connection.isClosed()) this.#channel = this.#openChannel()
  }

  #close(channel: Channel): void {
    clearTimeout(this.#late.get(channel))
    this.#late.delete(channel)
    channel.subscription.unsubscribe()
  }

  close(): void {
    this.#open?.end({ isComplete: true })
    for (const channel of [this.#channel, ...this.#late.keys()]) this.#close(channel)
  }
}

const NANOS = 1_000_000
/** The server is alive. */
const ALIVE = 100

function endFor(code: number, description = ''): PullEnd {
  if (USUAL.includes(code)) return { isComplete: true }
  // The former leader may still send messages.
  if (code === CONFLICT && MOVED.test(description)) return { isComplete: false }
  return { isComplete: true, problem: noAnswer(code, description) }
}

const noAnswer = (code: number, description: string) =>
  new Error(
    code === 503
      ? 'The consumer does not respond: JetStream is not available, or the consumer was deleted. Check the NATS server, then restart the consumer.'
      : `The server ended a request for messages: ${code} ${description}`,
  )
