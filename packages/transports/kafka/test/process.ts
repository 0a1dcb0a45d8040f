import { subscribe } from 'node:diagnostics_channel'
import type { Connection } from '@platformatic/kafka'
import type { TransportFault } from '@redrive/testing'

/** Request types of the protocol. */
export const PRODUCE = 0
export const OFFSET_COMMIT = 8
export const END_TXN = 26

type Send = Connection['send']
type Callback = (error: Error | null, answer?: unknown) => void

/** Decides whether a request is sent unchanged or changed by the test. */
export type OnRequest = (
  apiKey: number,
  send: (answered?: Callback) => void,
  callback: Callback,
) => void

const asIs: OnRequest = (_, send) => send()

/**
 * The process of a transport, as the broker sees it: all its connections, which a test can observe
 * and break. Pass it to the clients as their `context`.
 */
export class Process {
  readonly #connections = new Set<Connection>()
  readonly #onRequest: OnRequest
  readonly #death = Promise.withResolvers<void>()
  isAlive = true

  constructor(onRequest: OnRequest = asIs) {
    this.#onRequest = onRequest
  }

  /** Resolves when the process dies: its requests get no response after that. */
  get death(): Promise<void> {
    return this.#death.promise
  }

  /** Ends the process like `kill -9`: without leaving the group, and nothing more is sent. */
  die(): void {
    this.isAlive = false
    this.#death.resolve()
    for (const { socket } of this.#connections) socket?.destroy(new Error('killed'))
  }

  /** Interrupts the connection, like a cable that is pulled and plugged in again. */
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

/** A process with a fault of the contract: after it is armed, it crashes in the middle of the next request. */
export class FaultyProcess extends Process {
  isArmed = false
  /** The request whose next answer is lost, although it has taken effect. */
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
