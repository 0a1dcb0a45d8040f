import type { LookupFunction } from 'node:net'
import {
  AddressGuard,
  allowProblem,
  HttpClient,
  notAllowed,
  type Problems,
} from '@redrive/sinks/internal'
import type { AlertNotice } from './notice.ts'

/** One destination of alerts. */
export interface AlertChannel {
  /** Its kind, and its host when there may be several. Contains no secret. */
  readonly name: string
  /**
   * Identifies the destination, also after a restart and after a change of its password. It may be a secret, so only its
   * hash is stored.
   */
  readonly address: string
  /** Maximum number of alerts in one message. */
  readonly batch: number
  /** Maximum time of a delivery in ms (default 10,000). */
  readonly timeoutMs?: number
  /** Returns the message as text, with `***` instead of secrets. */
  preview(notices: readonly AlertNotice[]): string
  /** Resolves when the destination has accepted the message. It does not retry. */
  send(notices: readonly AlertNotice[], options: { readonly signal: AbortSignal }): Promise<void>
  close(): Promise<void>
}

/** Options of every channel. */
export interface ChannelOptions {
  /** Name in errors and in the dry run. Default: its kind and its host. */
  readonly name?: string
  /**
   * Allowed targets that are not public: addresses, ranges such as '10.0.0.0/8', or names, which may then
   * resolve to any address. Default: none.
   */
  readonly allow?: readonly string[]
  /** Resolves names to addresses. Its results are checked. Default: the resolver of the system. */
  readonly lookup?: LookupFunction
}

/** Reports invalid entries of `allow`. */
export function checkAllow(problems: Problems, allow: readonly string[] = []): void {
  for (const entry of allow) {
    const problem = allowProblem(entry)
    if (problem !== undefined) problems.add(problem)
  }
}

/** An HTTP request of a channel. */
export interface ChannelRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

interface HttpChannelOptions extends ChannelOptions {
  readonly kind: string
  readonly url: URL
  readonly address: string
  readonly batch: number
  /** Texts that errors and previews must not contain. */
  readonly secrets: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
  /** Turns alerts into a request. */
  readonly request: (notices: readonly AlertNotice[]) => ChannelRequest
}

/** Creates a channel that posts each message to a URL. */
export function httpChannel(options: HttpChannelOptions): AlertChannel {
  const { kind, url, address, batch, secrets, request, allow = [], lookup } = options
  const { name = `${kind} ${url.host}`, headers = {} } = options
  const guard = new AddressGuard(allow, lookup)
  const client = new HttpClient({ name, headers, secrets, lookup: guard.lookup })
  return {
    name,
    address,
    batch,
    preview: (notices) => client.redact(readable(request(notices).body)),
    async send(notices, { signal }) {
      // An address needs no lookup, so it is checked here.
      if (!guard.allowsHost(hostOf(url))) throw notAllowed(url.hostname)
      await client.expectSuccess({ method: 'POST', url, ...request(notices), signal })
    },
    async close() {
      client.close()
    },
  }
}

/** Returns the host as Node's connections expect it. An IPv6 address has brackets only in a URL. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

/** Returns each line of JSON with line breaks. */
function readable(body: string): string {
  const lines = body.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.stringify(JSON.parse(line), undefined, 2)).join('\n')
}

export const JSON_TYPE: Readonly<Record<string, string>> = { 'content-type': 'application/json' }
