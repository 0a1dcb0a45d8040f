import type { RequestListener } from 'node:http'
import { Provider } from 'oidc-provider'
import { type Listening, listening } from '../../harness/listening.ts'

export const CLIENT = { id: 'redrive', secret: 'a secret of the client' }

export interface Account {
  readonly name: string
  readonly groups: readonly string[]
}

/** A real OpenID provider on this machine. It accepts any user with any password. */
export class OpenId {
  readonly issuer: string
  /** Accounts of the directory. A user who is not in it has no name and no groups. */
  readonly accounts: Map<string, Account> = new Map<string, Account>()
  readonly #listening: Listening
  #handle: RequestListener = () => undefined

  static async start(): Promise<OpenId> {
    let handle: RequestListener = () => undefined
    const started = await listening((request, response) => handle(request, response), '127.0.0.1')
    const made = new OpenId(started)
    handle = (request, response) => made.#handle(request, response)
    return made
  }

  private constructor(started: Listening) {
    this.#listening = started
    // Another site than the server, as in production.
    this.issuer = `http://localhost:${started.port}`
  }

  /** Registers this server as a client. */
  serve(serverUrl: string): void {
    const provider = new Provider(this.issuer, {
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
        claims: () => ({ sub: id, name: id, groups: [], ...this.accounts.get(id) }),
      }),
      pkce: { required: () => true },
      cookies: { keys: ['a key of the drill'] },
    })
    this.#handle = provider.callback()
  }

  end(): Promise<void> {
    return this.#listening.end()
  }
}
