import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

const CLIENT = { id: 'redrive', secret: 'a secret of the client' }

/** A real OpenID provider on this machine. It accepts any user with any password. */
export interface OpenIdProvider {
  /** The value of `auth` in the config of the server. */
  readonly auth: object
  /** Host and port, which the sign-in page names. */
  readonly host: string
  /** Registers the server as a client. */
  register(serverUrl: string): void
  end(): void
}

export async function openIdProvider(): Promise<OpenIdProvider> {
  let handle: RequestListener = (_request, response) => response.writeHead(503).end()
  const server = createServer((request, response) => handle(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // Another site than the server, as in production.
  const host = `localhost:${(server.address() as AddressInfo).port}`
  const issuer = `http://${host}`
  const scopes = ['openid', 'profile']
  return {
    auth: { oidc: { issuer, clientId: CLIENT.id, clientSecret: CLIENT.secret, scopes } },
    host,
    register(serverUrl) {
      const provider = new Provider(issuer, {
        clients: [
          {
            client_id: CLIENT.id,
            client_secret: CLIENT.secret,
            redirect_uris: [`${serverUrl}/auth/callback`],
          },
        ],
        claims: { openid: ['sub'], profile: ['name', 'groups'] },
        findAccount: (_: unknown, id: string) => ({
          accountId: id,
          claims: () => ({ sub: id, name: id, groups: [] }),
        }),
        pkce: { required: () => true },
        cookies: { keys: ['a key of the proof'] },
      })
      handle = provider.callback()
    },
    end() {
      server.closeAllConnections()
      server.close()
    },
  }
}
