import { connect, createServer, type Server, type Socket } from 'node:net'

/** What happens to bytes on a connection. */
export type Mode =
  | 'pass'
  /** Both sides hear nothing any more, and nobody tells them. */
  | 'black-hole'
  /** The server hears the client, the client hears nothing. */
  | 'deaf-client'

export interface Connection {
  /** The first bytes the client sent: they name it. */
  readonly greeting: string
  mode: Mode
  /** Looks at what the server sends; what it answers is passed on instead. */
  fromServer: ((bytes: Buffer) => Buffer) | undefined
  /** Breaks it, as a firewall that forgets does not: with a reset. */
  destroy(): void
}

export interface Proxy {
  readonly port: number
  connections(): readonly Connection[]
  /** New connections lead to another port from now on. */
  aimAt(port: number): void
  /** A client that says this is cut off before the server hears it. */
  cutAt: RegExp | undefined
  close(): Promise<void>
}

/** 4 KB: a client has named itself by then, or said what the connection is for. */
const GREETING_BYTES = 4_096

/** A wire between clients and a server on this machine that can be broken in the ways wires break. */
export async function startProxy(targetPort: number): Promise<Proxy> {
  const connections = new Set<Connection>()
  let target = targetPort
  const server = createServer({ noDelay: true }, (client) => {
    const connection = wire(client, target, () => connections.delete(connection))
    connections.add(connection)
    client.prependListener('data', (bytes) => {
      if (proxy.cutAt?.test(bytes.toString('latin1')) === true) connection.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: Proxy = {
    port: portOf(server),
    cutAt: undefined,
    connections: () => [...connections],
    aimAt(port) {
      target = port
    },
    async close() {
      for (const connection of connections) connection.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return proxy
}

function wire(client: Socket, targetPort: number, onEnd: () => void): Connection {
  const upstream = connect({ port: targetPort, host: '127.0.0.1', noDelay: true })
  let greeting = ''
  const connection: Connection = {
    get greeting() {
      return greeting
    },
    mode: 'pass',
    fromServer: undefined,
    destroy() {
      reset(client)
      reset(upstream)
    },
  }
  client.on('data', (bytes) => {
    if (greeting.length < GREETING_BYTES) greeting += bytes.toString('latin1')
    if (connection.mode !== 'black-hole' && !upstream.destroyed) upstream.write(bytes)
  })
  upstream.on('data', (bytes) => {
    if (connection.mode === 'pass') client.write(connection.fromServer?.(bytes) ?? bytes)
  })
  // A black hole swallows the end of a connection as well; each side finds out for itself.
  const end = (other: Socket) => () => {
    if (connection.mode === 'pass') other.destroy()
    if (client.destroyed && upstream.destroyed) onEnd()
  }
  client.on('close', end(upstream))
  upstream.on('close', end(client))
  for (const socket of [client, upstream]) socket.on('error', () => undefined)
  return connection
}

/** A socket that is on its way to its end cannot be reset any more, and would never get there. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening')
  return address.port
}
