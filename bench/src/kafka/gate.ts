// Holds back the fetches of a candidate while its topic is filled. Records read ahead during that
// time would not be timed, and a candidate with more partitions would read more.
import { subscribe } from 'node:diagnostics_channel'
import type { Connection } from '@platformatic/kafka'

type Send = Connection['send']
type Callback = (error: Error | null, answer?: unknown) => void

/** The API key of the request in the protocol. */
const FETCH = 1

/** Controls all connections of one candidate. Pass it to the client library as `context`. */
export class Gate {
  #isOpen = true
  #inFlight = 0
  #held: (() => void)[] = []
  #onQuiet: (() => void) | undefined

  open(): void {
    this.#isOpen = true
    for (const send of this.#held.splice(0)) send()
  }

  /** Resolves when no fetch is in progress. */
  async close(): Promise<void> {
    this.#isOpen = false
    if (this.#inFlight === 0) return
    await new Promise<void>((resolve) => {
      this.#onQuiet = resolve
    })
  }

  watch(connection: Connection): void {
    const send = connection.send.bind(connection) as Send
    const watched = (...args: Parameters<Send>) => {
      if (args[0] !== FETCH) return Reflect.apply(send, connection, args)
      const begin = () => this.#begin(connection, send, args)
      if (this.#isOpen) begin()
      else this.#held.push(begin)
      return true
    }
    connection.send = watched as Send
  }

  #begin(connection: Connection, send: Send, args: Parameters<Send>): void {
    const answered = args.at(-1) as Callback
    this.#inFlight += 1
    const counted: Callback = (error, answer) => {
      this.#inFlight -= 1
      answered(error, answer)
      if (this.#inFlight === 0) this.#onQuiet?.()
    }
    Reflect.apply(send, connection, [...args.slice(0, -1), counted])
  }
}

subscribe('plt:kafka:instances', (message) => {
  const { type, instance } = message as { readonly type: string; readonly instance: unknown }
  if (type !== 'connection') return
  const connection = instance as Connection
  if (connection.context instanceof Gate) connection.context.watch(connection)
})
