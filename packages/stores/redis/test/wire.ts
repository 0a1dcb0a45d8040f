import { connect, createServer, type Server, type Socket } from 'node:net'
import { once } from 'node:events'

/** A proxy to the server that breaks after a number of bytes, or when a response arrives. */
export class BreakingProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Bytes that are still forwarded; later ones are never sent. */
  left = Number.POSITIVE_INFINITY
  /** True to drop the responses of the server. */
  dropsResponses = false

  private constructor(server: Server) {
    this.#server = server
  }

  static async to(url: string): Promise<BreakingProxy> {
    const { hostname, port } = new URL(url)
    const server = createServer((down) => proxy.#join(down, connect(Number(port), hostname)))
    const proxy = new BreakingProxy(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return proxy
  }

  get url(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('The proxy is closed.')
    return `redis://127.0.0.1:${address.port}`
  }

  close(): void {
    this.#server.close()
    this.#cut()
  }

  #join(down: Socket, up: Socket): void {
    for (const socket of [down, up]) {
      this.#sockets.add(socket)
      // The test cuts the connection on purpose. The client reports that to its callers.
      socket.on('error', () => this.#cut())
      socket.on('close', () => this.#cut())
    }
    down.on('data', (bytes) => this.#send(bytes, up))
    up.on('data', (bytes) => (this.dropsResponses ? this.#cut() : down.write(bytes)))
  }

  #send(bytes: Buffer, up: Socket): void {
    const fitting = bytes.subarray(0, this.left)
    this.left -= fitting.length
    if (fitting.length === bytes.length) up.write(bytes)
    else up.write(fitting, () => this.#cut())
  }

  #cut(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
  }
}
