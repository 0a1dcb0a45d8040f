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
/** The server ends requests with this when a leader changes or it stops. The next request works. */
const CONFLICT = 409

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

interface OpenPull {
  left: number
  count: number
  readonly startedAt: number
  readonly end: (problem?: Error) => void
}

/** Requests messages of one consumer, one request at a time. */
export class Puller {
  readonly #connection: NatsConnection
  readonly #subject: string
  readonly #inbox = createInbox()
  readonly #subscription: Subscription
  #open: OpenPull | undefined
  #count = 0

  /** `onMessage` gets each message, and the earliest time at which the server can have sent it. */
  constructor(
    connection: NatsConnection,
    { stream, consumer }: { readonly stream: string; readonly consumer: string },
    onMessage: (message: Msg, sentAfter: number) => void,
  ) {
    this.#connection = connection
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`
    let lastStart = performance.now()
    this.#subscription = connection.subscribe(`${this.#inbox}.*`, {
      callback: (_, message) => {
        if (this.#endedBy(message)) return
        lastStart = this.#open?.startedAt ?? lastStart
        // It may arrive after the end of its request was noticed here. The server has counted it, so it is used.
        onMessage(message, lastStart)
        if (this.#open !== undefined) this.#received(this.#open)
      },
    })
  }

  /** The number of messages that the open request may still deliver. */
  get expected(): number {
    return this.#open?.left ?? 0
  }

  get isOpen(): boolean {
    return this.#open !== undefined
  }

  pull({ batch, waitMs }: PullOptions): Promise<PullResult> {
    const { promise, resolve } = Promise.withResolvers<PullResult>()
    const end = (problem?: Error) => {
      clearTimeout(timer)
      this.#open = undefined
      resolve({ count: open.count, problem })
    }
    const open: OpenPull = { left: batch, count: 0, startedAt: performance.now(), end }
    const timer = setTimeout(end, waitMs + LATE_MS)
    this.#open = open
    this.#count += 1
    const expiry = waitMs === 0 ? { no_wait: true } : { expires: waitMs * NANOS }
    try {
      this.#connection.publish(this.#subject, JSON.stringify({ batch, ...expiry }), {
        reply: `${this.#inbox}.${this.#count}`,
      })
    } catch (error) {
      end(error as Error)
    }
    return promise
  }

  #received(open: OpenPull): void {
    open.count += 1
    open.left -= 1
    if (open.left <= 0) open.end()
  }

  /** Returns whether the message is a status. It ends its request, unless that has ended before. */
  #endedBy({ headers, subject, reply }: Msg): boolean {
    const code = headers?.code ?? 0
    if (code === 0 && reply !== undefined) return false
    const isCurrent = subject === `${this.#inbox}.${this.#count}`
    // 100: the server is alive.
    if (code === 100 || !isCurrent) return true
    const isUsual = USUAL.includes(code) || (code === CONFLICT && !isGone(headers?.description))
    this.#open?.end(isUsual ? undefined : noAnswer(code, headers?.description))
    return true
  }

  close(): void {
    this.#subscription.unsubscribe()
    this.#open?.end()
  }
}

const NANOS = 1_000_000

const isGone = (description = '') => /deleted|push based/i.test(description)

const noAnswer = (code: number, description = '') =>
  new Error(
    code === 503
      ? 'The consumer does not respond: JetStream is not available, or the consumer was deleted. Check the NATS server, then restart the consumer.'
      : `The server ended a request for messages: ${code} ${description}`,
  )
