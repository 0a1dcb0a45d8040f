import { createServer } from 'node:net'
import { type Listener, listen } from './tcp.ts'

/** Starts a server that rejects each password, with the bytes of a PostgreSQL server. */
export function listenAsStrictPostgres(): Promise<Listener> {
  return listen(
    createServer((socket) => {
      socket.once('data', () => {
        // AuthenticationCleartextPassword
        socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]))
        socket.once('data', () => socket.end(rejection()))
      })
    }),
  )
}

/** Starts a server that accepts each login and ends the connection at the first query. */
export function listenAsLostPostgres(): Promise<Listener> {
  return listen(
    createServer((socket) => {
      socket.once('data', () => {
        // AuthenticationOk, ReadyForQuery
        socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]))
        socket.once('data', () => socket.end())
      })
    }),
  )
}

function rejection(): Buffer {
  const fields = ['SFATAL', 'VFATAL', 'C28P01', 'Mpassword authentication failed', 'Rauth_failed']
  const body = Buffer.from(`${fields.map((field) => `${field}\0`).join('')}\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
