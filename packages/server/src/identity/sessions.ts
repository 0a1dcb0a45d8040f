import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { runOn } from '../database.ts'
import { newSecret, sha256 } from './secrets.ts'
import {
  DELETE_OLD_SESSIONS,
  DELETE_SESSION,
  FIND_SESSION,
  INSERT_SESSION,
  SESSION_SEEN,
  STORE_PERSON,
} from './statements.ts'

/** A user that the provider authenticated. */
export interface Person {
  /** Issuer and subject. They identify a user permanently. */
  readonly id: string
  /** Display name. */
  readonly name: string
  /** Groups at the last login. */
  readonly groups: readonly string[]
}

export interface Session {
  readonly id: string
  readonly person: Person
}

export interface SessionLimits {
  /** A session ends after this time without a request. */
  readonly idleMs: number
  /** Maximum duration of a session. */
  readonly mostMs: number
}

export interface Sessions {
  /** Opens a session with a new secret, so that a secret from before the login is useless. */
  open(person: Person): Promise<{ readonly secret: string; readonly session: Session }>
  find(secret: string): Promise<Session | undefined>
  close(secret: string): Promise<void>
}

/** 1 min between two updates of a used session. A session may end this much earlier, but never later. */
const SEEN_EVERY_MS = 60_000

interface SessionRow {
  readonly id: string
  readonly person_id: string
  readonly name: string
  readonly groups: readonly string[]
  readonly is_stale: boolean
}

export function sessionsIn(pool: Pool, { idleMs, mostMs }: SessionLimits): Sessions {
  const run = runOn(pool)
  const everyMs = Math.min(SEEN_EVERY_MS, idleMs / 2)
  return {
    async open(person) {
      const secret = newSecret()
      const id = randomUUID()
      await run(STORE_PERSON, [person.id, person.name, person.groups])
      // Deletes ended sessions at each login, so that no cleanup job is needed.
      await run(DELETE_OLD_SESSIONS, [mostMs])
      await run(INSERT_SESSION, [sha256(secret), id, person.id])
      return { secret, session: { id, person } }
    },
    async find(secret) {
      const values = [sha256(secret), idleMs, mostMs, everyMs]
      const [found] = await run<SessionRow>(FIND_SESSION, values)
      if (found === undefined) return undefined
      const { id, person_id, name, groups, is_stale } = found
      if (is_stale) await run(SESSION_SEEN, [id])
      return { id, person: { id: person_id, name, groups } }
    },
    async close(secret) {
      await run(DELETE_SESSION, [sha256(secret)])
    },
  }
}
