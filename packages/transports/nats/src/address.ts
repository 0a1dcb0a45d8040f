import type { NodeConnectionOptions } from '@nats-io/transport-node'

/** 10 s: a dead connection is noticed after two missed pings. */
const PING_MS = 10_000

/**
 * Returns options for `connect` of `@nats-io/transport-node`, as `nats()` uses them for `servers`. The client library
 * ignores credentials in addresses, so they are moved to its options: `user:password@`, or a token without a colon.
 */
export function connectionOptions(servers: string | readonly string[]): NodeConnectionOptions {
  const urls = [servers].flat().map((address) => new URL(withScheme(address)))
  const [first] = urls.filter(({ username }) => username !== '')
  return {
    servers: urls.map(({ host }) => host),
    name: 'redrive',
    // Forever: the consumer waits for its server.
    maxReconnectAttempts: -1,
    // Without it, two rejections in a row close the connection, such as while a password is changed.
    ignoreAuthErrorAbort: true,
    pingInterval: PING_MS,
    ...(first === undefined ? {} : credentialsIn(first)),
    ...(urls.some(({ protocol }) => protocol === 'tls:') ? { tls: {} } : {}),
  }
}

function credentialsIn({ username, password }: URL): NodeConnectionOptions {
  const user = decodeURIComponent(username)
  return password === '' ? { token: user } : { user, pass: decodeURIComponent(password) }
}

const withScheme = (address: string) => (address.includes('://') ? address : `nats://${address}`)

/** Returns whether `connectionOptions` can read an address. */
export const isAddress = (value: unknown): boolean =>
  typeof value === 'string' && (URL.parse(withScheme(value))?.host ?? '') !== ''
