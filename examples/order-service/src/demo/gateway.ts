import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Happenings } from './happenings.ts'

/** A payment gateway like real ones: it supports idempotency keys and has outages. */
export class Gateway {
  /** The key of each charge request that arrived while it was up. */
  readonly requestedKeys = new Happenings<string>()
  /** Charges that were really made: one for each key. */
  readonly charges = new Set<string>()
  isDown = false
  /** Whether it charges and sends no response. */
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
    this.requestedKeys.add(key)
    if (!this.isMute) response.writeHead(201).end()
  }
}
