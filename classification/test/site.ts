import { freePort, urlOf } from '@redrive/dev-support'
import { type HttpResponse, respond } from './servers/http.ts'
import { type Listener, listenAndReset, listenSilently } from './servers/tcp.ts'

/** Times that clients wait, so that a server without a response fails fast. */
export const WAIT_MS = 300

/** Time of clients that get a response. A slow machine must not exceed it. */
export const PATIENCE_MS = 20_000

/** A name below the top-level domain that never exists (RFC 6761). */
export const MISSING_HOST = 'redrive-test.invalid'

/** The servers that the provocations of one file use. */
export interface Site {
  /** Starts a server that closes when the site closes. */
  readonly start: (starting: Promise<Listener>) => Promise<number>
  readonly closedPort: () => Promise<number>
  /** Starts a server that accepts connections and never responds. */
  readonly silentPort: () => Promise<number>
  /** Starts a server that resets each connection at its first byte. */
  readonly resetPort: () => Promise<number>
  /** Starts a server that sends this response, and returns its port. */
  readonly respond: (response: HttpResponse) => Promise<number>
  /** Starts a real server of `dev/services` and returns its address. */
  readonly url: (service: string, scheme?: string) => Promise<string>
  readonly close: () => Promise<void>
}

/** Calls a client in one situation. The result rejects with the error of the client. */
export type Provoke = (site: Site) => Promise<unknown>

/** Provocations by package and situation. */
export type Provocations = Readonly<Record<string, Readonly<Record<string, Provoke>>>>

export function openSite(): Site {
  const listeners: Listener[] = []
  const urls = new Map<string, Promise<string>>()
  const start = async (starting: Promise<Listener>): Promise<number> => {
    const listener = await starting
    listeners.push(listener)
    return listener.port
  }
  return {
    start,
    closedPort: freePort,
    silentPort: () => start(listenSilently()),
    resetPort: () => start(listenAndReset()),
    respond: (response) => start(respond(response)),
    url: (service, scheme) => {
      const url = urls.get(service) ?? urlOf(service, scheme)
      urls.set(service, url)
      return url
    },
    close: async () => {
      await Promise.all(listeners.map((listener) => listener.close()))
    },
  }
}
