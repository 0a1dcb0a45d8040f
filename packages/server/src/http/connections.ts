import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * Closes idle connections when the server stops. Otherwise it would wait for connections without a request,
 * which browsers open in advance, and for connections that stay open after the last response.
 */
export function closeQuietOnes(app: FastifyInstance): void {
  const open = new Set<Socket>()
  app.server.on('connection', (socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  // Bytes of a handshake are not a request.
  const quiet = new Set<Socket>()
  app.server.on('secureConnection', (socket: Socket) => {
    quiet.add(socket)
    socket.once('close', () => quiet.delete(socket))
  })
  app.server.on('request', ({ socket }) => quiet.delete(socket))
  app.addHook('preClose', async () => {
    app.server.keepAliveTimeout = 1
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
    for (const socket of quiet) socket.destroy()
  })
}
