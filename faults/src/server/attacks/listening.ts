import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server of the harness; `end` closes it with whoever is connected. */
export interface Listening {
  readonly port: number
  end(): Promise<void>
}

/** On all loopback addresses of IPv4, so that it has several names. */
export async function listening(listener: RequestListener, host = '0.0.0.0'): Promise<Listening> {
  return started(createServer(listener), host)
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
