import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The service that a handler calls. It breaks after a number of calls and is repaired on request. */
export class Downstream {
  /** Time of the first call for each message. */
  readonly firsts: Map<string, number> = new Map()
  #brokenAt: number | undefined
  #isBroken = false
  readonly #breaksAt: number
  readonly #server: Server

  constructor({ breaksAt }: { readonly breaksAt: number }) {
    this.#breaksAt = breaksAt
    this.#server = createServer((request, response) => {
      if (request.method === 'POST') this.#called(request.url ?? '')
      response.writeHead(this.#isBroken ? 503 : 200).end()
    })
  }

  #called(path: string): void {
    if (!this.firsts.has(path)) this.firsts.set(path, Date.now())
    if (this.firsts.size < this.#breaksAt || this.#brokenAt !== undefined) return
    this.#isBroken = true
    this.#brokenAt = Date.now()
  }

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get brokenAt(): number | undefined {
    return this.#brokenAt
  }

  /** Number of messages with a first call after the break. */
  get attemptedSince(): number {
    const since = this.#brokenAt ?? Number.POSITIVE_INFINITY
    return [...this.firsts.values()].filter((at) => at > since).length
  }

  repair(): void {
    this.#isBroken = false
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}
