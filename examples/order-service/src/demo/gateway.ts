import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Happenings } from './happenings.ts'

/** A payment gateway like the real ones: it honours idempotency keys, and it has bad days. */
export class Gateway {
  /** The key of each charge that was asked for while it was up. */
  readonly asked = new Happenings<string>()
  /** Money that was really taken: one charge for each key. */
  readonly charges = new Set<string>()
  isDown = false
  /** It takes the money, and its answer never arrives. */
  isMute = false
  readonly #server: Server

  private constructor() {
    this.#server = createServer((request, response) => {
      request.resume().once('end', () => this.#answer(request.headers['idempotency-key'], response))
    })
  }

  static async open(): Promise<Gateway> {
    const gateway = new Gateway()
    await new Promise<void>((resolve) => gateway.#server.listen(0, '127.0.0.1', resolve))
    return gateway
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #answer(key: string | readonly string[] | undefined, response: ServerResponse): void {
    if (this.isDown || typeof key !== 'string') {
      response.writeHead(this.isDown ? 503 : 400).end()
      return
    }
    this.charges.add(key)
    this.asked.add(key)
    if (!this.isMute) response.writeHead(201).end()
  }
}
