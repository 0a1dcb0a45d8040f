import type { Connection, PoolClient, Submittable } from 'pg'

/** Runs a `copy … from stdin` statement with these rows. */
export const copyIn = (client: PoolClient, text: string, rows: Buffer): Promise<void> =>
  new Promise((resolve, reject) => {
    client.query(new CopyIn(text, rows, (error) => (error ? reject(error) : resolve())))
  })

/** The methods of a connection that are missing in the types of `pg`. */
interface CopyConnection extends Connection {
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
}

/** A custom query for `pg`. The client calls these methods for each message of the server. */
class CopyIn implements Submittable {
  readonly #text: string
  readonly #rows: Buffer
  // `pg` replaces this property when `query_timeout` is set.
  callback: (error?: Error) => void

  constructor(text: string, rows: Buffer, callback: (error?: Error) => void) {
    this.#text = text
    this.#rows = rows
    this.callback = callback
  }

  /** Sends the rows without waiting for a response. If the server rejects the statement, it skips the rows. */
  submit(connection: Connection): void {
    const copying = connection as CopyConnection
    copying.query(this.#text)
    copying.sendCopyFromChunk(this.#rows)
    copying.endCopyFrom()
  }

  handleCopyInResponse(): void {}

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.callback()
  }

  handleError(error: Error): void {
    this.callback(error)
  }
}
