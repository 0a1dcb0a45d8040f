import { connect, createServer, type Server, type Socket } from 'node:net'

/** The treatment of bytes on a connection. */
export type Mode =
  | 'pass'
  /** Neither side receives anything, and neither gets an error. */
  | 'black-hole'
  /** The server receives the client's bytes; the client receives nothing. */
  | 'deaf-client'

export interface Connection {
  /** The first bytes of the client. They identify it. */
  readonly greeting: string
  mode: Mode
  /** Receives the server's bytes and returns the bytes to pass on. */
  fromServer: ((bytes: Buffer) => Buffer) | undefined
  /** Resets both sides of the connection. */
  destroy(): void
}

export interface Proxy {
  readonly port: number
  connections(): readonly Connection[]
  /** Leads new connections to another port from now on. */
  aimAt(port: number): void
  /** Cuts off a client that sends this text, before the server receives it. */
  cutAt: RegExp | undefined
  close(): Promise<void>
}

/** 4 KB: by then a client has sent its name or the purpose of the connection. */
const GREETING_BYTES = 4_096

/**
 * Starts a proxy between clients and a server on this machine. It can break connections in the ways
 * that networks do.
 */
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
  // A black hole also drops the end of a connection. Each side must notice the end without help.
  const end = (other: Socket) => () => {
    if (connection.mode === 'pass') other.destroy()
    if (client.destroyed && upstream.destroyed) onEnd()
  }
  client.on('close', end(upstream))
  upstream.on('close', end(client))
  for (const socket of [client, upstream]) socket.on('error', () => undefined)
  return connection
}

/** Resets a socket. A socket that is already closing cannot be reset and would never close. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening')
  return address.port
}
