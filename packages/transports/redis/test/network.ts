import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'

export interface Network {
  /** A client whose connections a test can break. */
  readonly client: Redis
  /** Neither side receives anything from now on, and neither gets an error. */
  cut(): void
  /** Resets the connections that were cut, and passes on new ones. */
  heal(): void
  /** Resets the connection in place of the next response that contains this text. */
  lostResponse: string | undefined
}

/** Connects to a server through a proxy. */
export async function networkTo(
  url: string,
  options: { readonly autoResendUnfulfilledCommands?: boolean } = {},
): Promise<Network> {
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer({ noDelay: true }, (inner) => {
    const outer = connect({ port: Number(new URL(url).port), host: '127.0.0.1', noDelay: true })
    const end = () => {
      for (const socket of [inner, outer]) {
        socket.destroy()
        sockets.delete(socket)
      }
    }
    for (const socket of [inner, outer]) {
      sockets.add(socket)
      socket.on('close', end)
      // The other side gets the end of the connection.
      socket.on('error', end)
    }
    inner.on('data', (bytes) => void (isCut || outer.write(bytes)))
    outer.on('data', (bytes) => {
      const { lostResponse } = network
      if (lostResponse !== undefined && bytes.includes(lostResponse)) {
        network.lostResponse = undefined
        inner.resetAndDestroy()
      } else if (!isCut) inner.write(bytes)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = new Redis((server.address() as AddressInfo).port, '127.0.0.1', options)
  // The transport reports why a connection was lost.
  client.on('error', () => undefined)
  const network: Network = {
    client,
    lostResponse: undefined,
    cut() {
      isCut = true
    },
    heal() {
      isCut = false
      for (const socket of sockets) socket.resetAndDestroy()
    },
  }
  onTestFinished(() => {
    client.disconnect()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return network
}
