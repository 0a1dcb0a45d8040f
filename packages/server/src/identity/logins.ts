import type { Pool } from 'pg'
import { runOn } from '../database.ts'
import type { Pending } from './provider.ts'
import { newSecret, sha256 } from './secrets.ts'

/** A login that has begun. */
export interface Begun extends Pending {
  /** A whole address of ours. */
  readonly returnTo: string
}

/** 10 min: as long as somebody looks for a second factor. */
export const LOGIN_MS = 600_000

export interface Logins {
  /** Answers the secret that the browser has to bring back. */
  keep(begun: Begun): Promise<string>
  /** Once only: who comes a second time with the same answer of the provider finds nothing. */
  take(secret: string): Promise<Begun | undefined>
}

export function loginsIn(pool: Pool): Logins {
  const run = runOn(pool)
  return {
    async keep({ state, nonce, verifier, returnTo }) {
      const secret = newSecret()
      await run('delete from redrive_server.login where expires_at < now()')
      await run(
        `insert into redrive_server.login (secret_hash, state, nonce, verifier, return_to, expires_at)
values ($1, $2, $3, $4, $5, now() + ${LOGIN_MS} * interval '1 ms')`,
        [sha256(secret), state, nonce, verifier, returnTo],
      )
      return secret
    },
    async take(secret) {
      const [row] = await run<Begun & { readonly isOver: boolean }>(
        `delete from redrive_server.login where secret_hash = $1
returning state, nonce, verifier, return_to as "returnTo", expires_at < now() as "isOver"`,
        [sha256(secret)],
      )
      return row === undefined || row.isOver ? undefined : row
    },
  }
}
