import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy in front of a server, to make the server unreachable and reachable again. */
export interface Proxy {
  readonly port: number
  /** Simulates a dead machine: connections end, and new ones are reset. */
  cut(): void
  restore(): void
  close(): void
}

export async function openProxy(target: { host: string; port: number }): Promise<Proxy> {
  const sockets = new Set<Socket>()
  let isCut = false

  const server = createServer((client) => {
    client.on('error', () => undefined)
    if (isCut) {
      client.resetAndDestroy()
      return
    }
    const upstream = connect(target)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      // `close` follows every error, and both sides must close together.
      from.on('error', () => undefined)
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  const endAll = () => {
    for (const socket of [...sockets]) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true
      endAll()
    },
    restore() {
      isCut = false
    },
    close() {
      server.close()
      endAll()
    },
  }
}
