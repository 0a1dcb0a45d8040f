import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'

/** A server of the test, on a port of 127.0.0.1. */
export interface Listener {
  readonly port: number
  readonly close: () => Promise<void>
}

/** Starts a server. `close` also ends its open connections. */
export async function listen(server: Server): Promise<Listener> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    // Clients that give up reset their connection.
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { readonly port: number }
  const close = async () => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return { port, close }
}

/** Starts a server that accepts connections and never responds. */
export function listenSilently(): Promise<Listener> {
  return listen(createServer((socket) => socket.resume()))
}

/** Starts a server that ends each connection at its first byte. */
export function listenAndReset(): Promise<Listener> {
  return listen(createServer((socket) => socket.once('data', () => socket.resetAndDestroy())))
}
