import { subscribe } from 'node:diagnostics_channel'
import type { Connection } from '@platformatic/kafka'
import type { TransportFault } from '@redrive/testing'

/** Numbers of requests in the protocol. */
export const PRODUCE = 0
export const OFFSET_COMMIT = 8
export const END_TXN = 26

type Send = Connection['send']
type Callback = (error: Error | null, answer?: unknown) => void

/** What becomes of a request: sent as it is, or whatever the test makes of it. */
export type OnRequest = (
  apiKey: number,
  send: (answered?: Callback) => void,
  callback: Callback,
) => void

const asIs: OnRequest = (_, send) => send()

/**
 * The process a transport lives in, as the broker sees it: all its connections, which can be watched
 * and broken. Give it to the clients as their `context`.
 */
export class Process {
  readonly #connections = new Set<Connection>()
  readonly #onRequest: OnRequest
  readonly #death = Promise.withResolvers<void>()
  isAlive = true

  constructor(onRequest: OnRequest = asIs) {
    this.#onRequest = onRequest
  }

  /** Resolves when it dies: its requests are never answered after that. */
  get death(): Promise<void> {
    return this.#death.promise
  }

  /** As `kill -9`: no goodbye, and nothing leaves any more. */
  die(): void {
    this.isAlive = false
    this.#death.resolve()
    for (const { socket } of this.#connections) socket?.destroy(new Error('killed'))
  }

  /** As a cable that is pulled and put back. */
  cut(): void {
    for (const { socket } of this.#connections) socket?.destroy(new Error('cut'))
  }

  watch(connection: Connection): void {
    this.#connections.add(connection)
    const send = connection.send.bind(connection) as Send
    connection.on('connect', () => {
      if (!this.isAlive) connection.socket.destroy(new Error('killed'))
    })
    const watched = (...args: Parameters<Send>) => {
      const callback = args.at(-1) as Callback
      if (!this.isAlive) return
      this.#onRequest(
        args[0],
        (answered = callback) => {
          Reflect.apply(send, connection, [...args.slice(0, -1), answered])
        },
        callback,
      )
    }
    connection.send = watched as Send
  }
}

subscribe('plt:kafka:instances', (message) => {
  const { type, instance } = message as { readonly type: string; readonly instance: unknown }
  if (type !== 'connection') return
  const connection = instance as Connection
  if (connection.context instanceof Process) connection.context.watch(connection)
})

/** A process with a fault of the contract; it dies halfway through what is asked of it once it is armed. */
export class FaultyProcess extends Process {
  isArmed = false
  /** The request whose next answer does not arrive, though it has taken effect. */
  droppedResponse: number | undefined

  constructor(fault: TransportFault | undefined, isRefusing: () => boolean) {
    super((apiKey, send, callback) => {
      if (fault === 'dies_halfway' && this.isArmed && HALVES.has(apiKey))
        return send(() => this.die())
      if (fault === 'copies_refused' && apiKey === PRODUCE && isRefusing()) {
        return callback(new Error('The broker does not store copies.'))
      }
      if (apiKey === this.droppedResponse) {
        this.droppedResponse = undefined
        return send(() => callback(new Error('The answer of the broker was lost.')))
      }
      send()
    })
  }
}

const HALVES: ReadonlySet<number> = new Set([PRODUCE, OFFSET_COMMIT, END_TXN])
