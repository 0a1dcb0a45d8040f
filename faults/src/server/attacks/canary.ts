import { type Listening, listening } from '../../harness/listening.ts'

/** A server of the attacker. A request to it means that an attack succeeded. */
export class Canary {
  /** Requested addresses. */
  readonly requests: string[] = []
  readonly url: string
  readonly port: number
  readonly #listening: Listening
  /** Pages of the attacker, by path. */
  readonly pages: Map<string, string> = new Map<string, string>()

  static async start(): Promise<Canary> {
    let answer: (url: string) => string | undefined = () => undefined
    const started = await listening((request, response) => {
      const page = answer(request.url ?? '/')
      response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html' }).end(page)
    })
    const made = new Canary(started)
    answer = (url) => made.#answer(url)
    return made
  }

  private constructor(started: Listening) {
    this.#listening = started
    this.port = started.port
    this.url = `http://127.0.0.1:${started.port}`
  }

  #answer(url: string): string | undefined {
    const page = this.pages.get(url)
    // Browsers request it automatically for pages of the attacker.
    if (page === undefined && url !== '/favicon.ico') this.requests.push(url)
    return page
  }

  end(): Promise<void> {
    return this.#listening.end()
  }
}
