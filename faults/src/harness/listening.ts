import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server of the harness; `end` closes it and all its connections. */
export interface Listening {
  readonly port: number
  end(): Promise<void>
}

/** Listens on all IPv4 loopback addresses, so that it has several names. */
export async function listening(listener: RequestListener, host = '0.0.0.0'): Promise<Listening> {
  return started(createServer(listener), host)
}

/** Returns a free port. No other program on this machine starts servers at the same time. */
export async function freePort(): Promise<number> {
  const server = await started(createServer(), '127.0.0.1')
  await server.end()
  return server.port
}

export async function started(server: Server, host: string, port = 0): Promise<Listening> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    end: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
