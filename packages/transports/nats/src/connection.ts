import { RedriveError } from '@redrive/core'
import { withTimeout } from '@redrive/runtime/internal'
import type { NatsConnection } from '@nats-io/transport-node'
import type { Connect } from './options.ts'

/** 2 s: a server that does not answer must not block closing. */
const CLOSE_MS = 2_000

/** What happens to a connection. With the options of Redrive, the client library reconnects forever. */
export interface ConnectionEvents {
  readonly onLost?: (error: unknown) => void
  readonly onRestored?: () => void
  /** The client library has given up. The next `open` connects again. */
  readonly onClosed?: (error: unknown) => void
}

/** A connection that is opened on first use, and again after the client library has closed it. */
export class ManagedConnection {
  readonly #connect: Connect
  readonly #events: ConnectionEvents
  #opening: Promise<NatsConnection> | undefined
  #isClosed = false

  constructor(connect: Connect, events: ConnectionEvents = {}) {
    this.#connect = connect
    this.#events = events
  }

  async open(): Promise<NatsConnection> {
    if (this.#isClosed) throw new RedriveError('CLOSED', 'The connection to NATS is closed.')
    this.#opening ??= this.#open()
    try {
      return await this.#opening
    } catch (error) {
      // The next call connects again.
      this.#opening = undefined
      throw error
    }
  }

  async #open(): Promise<NatsConnection> {
    let connection: NatsConnection
    try {
      connection = await this.#connect()
    } catch (cause) {
      const why = messageOf(cause)
      throw new RedriveError(
        'UNREACHABLE',
        `Cannot connect to NATS: ${why}. Check the address, the credentials, and that the server runs.`,
        { cause },
      )
    }
    void this.#watch(connection)
    void connection.closed().then((cause) => this.#lose(connection, cause))
    return connection
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (this.#isClosed) return
      if (status.type === 'disconnect') this.#events.onLost?.(disconnected(status.server))
      if (status.type === 'reconnect') this.#events.onRestored?.()
    }
  }

  #lose(connection: NatsConnection, cause: unknown): void {
    this.#opening = undefined
    if (!this.#isClosed) this.#events.onClosed?.(cause ?? disconnected(connection.getServer()))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const connection = await this.#opening?.catch(() => undefined)
    if (connection === undefined || connection.isClosed()) return
    // Sends what is not written yet, such as acknowledgements.
    await withTimeout(Promise.allSettled([connection.flush()]), CLOSE_MS, () => undefined)
    await connection.close()
  }
}

const disconnected = (server: string) => new Error(`The connection to ${server} was lost.`)

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error)
