import { connect, createServer, type Server, type Socket } from 'node:net'
import { once } from 'node:events'

/** A wire to the server that breaks when so many bytes have gone up, or when an answer comes down. */
export class Wire {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Bytes that still go up; what comes after is never sent. */
  left = Number.POSITIVE_INFINITY
  /** The server answers, and nobody hears it. */
  isDeaf = false

  private constructor(server: Server) {
    this.#server = server
  }

  static async to(url: string): Promise<Wire> {
    const { hostname, port } = new URL(url)
    const server = createServer((down) => wire.#join(down, connect(Number(port), hostname)))
    const wire = new Wire(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return wire
  }

  get url(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('The wire is closed.')
    return `redis://127.0.0.1:${address.port}`
  }

  close(): void {
    this.#server.close()
    this.#cut()
  }

  #join(down: Socket, up: Socket): void {
    for (const socket of [down, up]) {
      this.#sockets.add(socket)
      // A cut is what it is for; who waits for an answer is told by the client.
      socket.on('error', () => this.#cut())
      socket.on('close', () => this.#cut())
    }
    down.on('data', (bytes) => this.#send(bytes, up))
    up.on('data', (bytes) => (this.isDeaf ? this.#cut() : down.write(bytes)))
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
