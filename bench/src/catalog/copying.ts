// Records the rows that an ingest copies on its connections, and copies them again into tables
// without an index.
import type { Client, Connection, Pool, PoolClient, Submittable } from 'pg'
import { poolOf } from '../postgres/database.ts'

/** Members of a connection that the types of `pg` do not contain. */
interface CopyConnection extends Connection {
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
}

const connectionOf = (client: Client | PoolClient) =>
  (client as unknown as { readonly connection: CopyConnection }).connection

/** The bytes of all rows, by the target of the copy: `dead_letter (id, …)`. */
export type Copied = Map<string, Buffer[]>

const COPY = /^copy redrive_catalog\.(.*) from stdin/
/** Signature, flags and extension length at the start; the end has no columns. */
const HEADER_BYTES = 19
const TRAILER_BYTES = 2

/** Returns a pool that records copied rows. */
export function recording(url: string, copied: Copied): Pool {
  const pool = poolOf(url)
  pool.on('connect', (client) => {
    const connection = connectionOf(client)
    const query = connection.query.bind(connection)
    const send = connection.sendCopyFromChunk.bind(connection)
    let target: string | undefined
    connection.query = (text) => {
      target = COPY.exec(text)?.[1]
      query(text)
    }
    connection.sendCopyFromChunk = (chunk) => {
      if (target !== undefined) {
        const rows = Buffer.from(chunk.subarray(HEADER_BYTES, chunk.length - TRAILER_BYTES))
        copied.set(target, [...(copied.get(target) ?? []), rows])
      }
      send(chunk)
    }
  })
  return pool
}

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
const TRAILER = Buffer.from([0xff, 0xff])

/** Copies all rows in one statement. */
class CopyIn implements Submittable {
  readonly #text: string
  readonly #chunks: readonly Buffer[]
  callback: (error?: Error) => void = () => undefined

  constructor(text: string, chunks: readonly Buffer[]) {
    this.#text = text
    this.#chunks = chunks
  }

  submit(connection: Connection): void {
    connection.query(this.#text)
  }

  handleCopyInResponse(connection: CopyConnection): void {
    for (const chunk of [SIGNATURE, ...this.#chunks, TRAILER]) connection.sendCopyFromChunk(chunk)
    connection.endCopyFrom()
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.callback()
  }

  handleError(error: Error): void {
    this.callback(error)
  }
}

/** Returns the name of the table without indexes and partitions; everything else is the same. */
export const bareOf = (target: string): string => `bare_${target}`

export async function copyBare(client: Client, copied: Copied): Promise<void> {
  for (const [target, chunks] of copied) {
    const text = `copy ${bareOf(target)} from stdin (format binary)`
    await new Promise<void>((resolve, reject) => {
      const copy = new CopyIn(text, chunks)
      copy.callback = (error) => (error === undefined ? resolve() : reject(error))
      client.query(copy)
    })
  }
}
