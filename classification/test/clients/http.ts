/** Requests to HTTP servers. Each client gets the same situations. */
import axios from 'axios'
import got from 'got'
import { Agent, fetch as undiciFetch, interceptors, request } from 'undici'
import {
  MISSING_HOST,
  PATIENCE_MS,
  type Provocations,
  type Provoke,
  type Site,
  WAIT_MS,
} from '../site.ts'

/** Sends a GET request. Rejects with the client's error, also for a status of 400 or more. */
type Send = (url: string, waitMs: number, signal?: AbortSignal) => Promise<unknown>
/** Sends a GET request and reads the response as JSON. */
type SendForJson = (url: string) => Promise<unknown>

const RETRY_AFTER = { 'retry-after': '7' }

/** The page that a proxy sends while the service is down. */
const PAGE = { status: 200, text: '<html>We are down for maintenance</html>' }

/** The situations of every HTTP client, by the request that it sends. */
function situationsOf(send: Send, sendForJson: SendForJson): Readonly<Record<string, Provoke>> {
  const toPort = (port: (site: Site) => Promise<number>) => async (site: Site) =>
    send(`http://127.0.0.1:${await port(site)}/`, PATIENCE_MS)
  const answered = (status: number, headers?: Readonly<Record<string, string>>) =>
    toPort((site) => site.respond({ status, ...(headers && { headers }) }))
  return {
    'closed port': toPort((site) => site.closedPort()),
    'host does not exist': () => send(`http://${MISSING_HOST}/`, PATIENCE_MS),
    'no response': async (site) => send(`http://127.0.0.1:${await site.silentPort()}/`, WAIT_MS),
    'connection reset': toPort((site) => site.resetPort()),
    'cancelled by the caller': async (site) => {
      const cancel = new AbortController()
      const url = `http://127.0.0.1:${await site.silentPort()}/`
      const sent = send(url, PATIENCE_MS, cancel.signal)
      cancel.abort()
      return sent
    },
    'status 400': answered(400),
    'status 401': answered(401),
    'status 403 with Retry-After': answered(403, RETRY_AFTER),
    'status 404': answered(404),
    'status 408': answered(408),
    'status 409': answered(409),
    'status 422': answered(422),
    'status 429 with Retry-After': answered(429, RETRY_AFTER),
    'status 500': answered(500),
    'status 503 with Retry-After': answered(503, RETRY_AFTER),
    'HTML instead of JSON': async (site) =>
      sendForJson(`http://127.0.0.1:${await site.respond(PAGE)}/`),
  }
}

/** undici returns responses of any status. This interceptor throws them. */
const agentFor = (waitMs: number) =>
  new Agent({ headersTimeout: waitMs }).compose(interceptors.responseError())

export const HTTP_CLIENTS: Provocations = {
  undici: {
    ...situationsOf(
      (url, waitMs, signal) =>
        request(url, { dispatcher: agentFor(waitMs), signal: signal ?? null }),
      async (url) => (await request(url)).body.json(),
    ),
    'fetch: closed port': async (site: Site) =>
      undiciFetch(`http://127.0.0.1:${await site.closedPort()}/`),
    'fetch: host does not exist': () => undiciFetch(`http://${MISSING_HOST}/`),
    'fetch: no response': async (site: Site) =>
      undiciFetch(`http://127.0.0.1:${await site.silentPort()}/`, {
        signal: AbortSignal.timeout(WAIT_MS),
      }),
  },
  axios: situationsOf(
    (url, waitMs, signal) => axios.get(url, { timeout: waitMs, ...(signal && { signal }) }),
    (url) => axios.get(url, { responseType: 'json', transitional: { silentJSONParsing: false } }),
  ),
  got: situationsOf(
    (url, waitMs, signal) =>
      got(url, { timeout: { request: waitMs }, retry: { limit: 0 }, ...(signal && { signal }) }),
    (url) => got(url, { retry: { limit: 0 } }).json(),
  ),
}
