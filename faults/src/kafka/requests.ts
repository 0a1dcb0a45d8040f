import { subscribe } from 'node:diagnostics_channel'
import type { Connection } from '@platformatic/kafka'

/** Requests that a consumer sends, by their API key in the protocol. */
const NAMES = {
  0: 'produce',
  1: 'fetch',
  2: 'list-offsets',
  3: 'metadata',
  8: 'commit',
  9: 'offset-fetch',
  10: 'find-coordinator',
  11: 'join',
  12: 'heartbeat',
  13: 'leave',
  14: 'sync',
  18: 'versions',
  19: 'create-topics',
  22: 'init-producer',
  24: 'txn-add-partitions',
  25: 'txn-add-offsets',
  26: 'txn-end',
  28: 'txn-commit',
  32: 'describe-configs',
} as const

export type RequestName = (typeof NAMES)[keyof typeof NAMES]

/** Returns the name; undefined for an unknown request. */
export const nameOfRequest = (apiKey: number): RequestName | undefined =>
  (NAMES as Readonly<Record<number, RequestName>>)[apiKey]

export type Callback = (error: Error | null, answer?: unknown) => void

export interface Request {
  readonly apiKey: number
  /** Its bytes, without the header. */
  payload(): Buffer
  /**
   * Sends the request; the watcher decides whether to call it. The watcher creates any other
   * response.
   */
  send(answered?: Callback): void
  readonly callback: Callback
  readonly connection: Connection
}

export type OnRequest = (request: Request) => void

type Send = Connection['send']

/** Receives every request on all connections of clients that use it as their `context`. */
export class Wire {
  readonly #onRequest: OnRequest

  constructor(onRequest: OnRequest) {
    this.#onRequest = onRequest
  }

  watch(connection: Connection): void {
    const send = connection.send.bind(connection) as Send
    const watched = (...args: Parameters<Send>) => {
      const callback = args.at(-1) as Callback
      this.#onRequest({
        apiKey: args[0],
        connection,
        callback,
        payload: () => (args[2]() as { readonly buffer: Buffer }).buffer,
        send(answered = callback) {
          Reflect.apply(send, connection, [...args.slice(0, -1), answered])
        },
      })
    }
    connection.send = watched as Send
  }
}

subscribe('plt:kafka:instances', (message) => {
  const { type, instance } = message as { readonly type: string; readonly instance: unknown }
  if (type !== 'connection') return
  const connection = instance as Connection
  if (connection.context instanceof Wire) connection.context.watch(connection)
})
