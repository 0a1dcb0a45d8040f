import {
  connect,
  credsAuthenticator,
  type NatsConnection,
  type NodeConnectionOptions,
} from '@nats-io/transport-node'
import { omitUndefined } from '../omit-undefined.ts'
import { readPem, type TlsFiles } from '../tls.ts'

interface NatsAccess {
  /** The client reads its properties for each connection, and so uses renewed certificates. */
  readonly tls: TlsFiles | undefined
  /** Text of a file with the credentials of a user. */
  readonly credentials: string | undefined
}

/** Returns a function that connects to NATS with certificates and credentials. */
export function connectNats(
  options: NodeConnectionOptions,
  { tls, credentials }: NatsAccess,
): () => Promise<NatsConnection> {
  const authenticator =
    credentials === undefined
      ? undefined
      : credsAuthenticator(new TextEncoder().encode(credentials))
  return () => connect({ ...options, ...omitUndefined({ tls, authenticator }) })
}

/** Returns the text of a credentials file, or of the setting itself. Read once: a server that changes its user starts again. */
export const natsCredentials = (where: string, value: string | undefined): string | undefined =>
  value === undefined || value.includes('-----BEGIN')
    ? value
    : readPem(`${where}.credentials`, value)
