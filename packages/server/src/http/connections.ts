import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * Lets the server stop as soon as everybody has an answer. By itself it would wait for those who connected
 * and never asked, as browsers do in advance, and for those who got the last answer and stay.
 */
export function closeQuietOnes(app: FastifyInstance): void {
  const open = new Set<Socket>()
  app.server.on('connection', (socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  app.addHook('preClose', async () => {
    app.server.keepAliveTimeout = 1
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  })
}
