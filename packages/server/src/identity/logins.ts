import type { Pool } from 'pg'
import { runOn } from '../database.ts'
import type { Pending } from './provider.ts'
import { newSecret, sha256 } from './secrets.ts'
import { DELETE_OLD_LOGINS, INSERT_LOGIN, TAKE_LOGIN } from './statements.ts'

/** A login that waits for the callback from the provider. */
export interface StartedLogin extends Pending {
  /** Absolute URL of this server. */
  readonly returnTo: string
}

/** 10 min: enough time to enter a second factor. */
export const LOGIN_MS = 600_000

export interface Logins {
  /** Stores a login and returns the secret that the browser must send back. */
  keep(begun: StartedLogin): Promise<string>
  /** Returns a login and deletes it, so that each callback works only once. */
  take(secret: string): Promise<StartedLogin | undefined>
}

export function loginsIn(pool: Pool): Logins {
  const run = runOn(pool)
  return {
    async keep({ state, nonce, verifier, returnTo }) {
      const secret = newSecret()
      await run(DELETE_OLD_LOGINS)
      await run(INSERT_LOGIN, [sha256(secret), state, nonce, verifier, returnTo, LOGIN_MS])
      return secret
    },
    async take(secret) {
      const hash = sha256(secret)
      const [row] = await run<StartedLogin & { readonly isOver: boolean }>(TAKE_LOGIN, [hash])
      return row === undefined || row.isOver ? undefined : row
    },
  }
}
