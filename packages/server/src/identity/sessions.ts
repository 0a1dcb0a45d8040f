import { randomUUID } from 'node:crypto'
import type { Output } from '@redrive/api'
import type { Pool } from 'pg'
import { runOn } from '../database.ts'
import { newSecret, sha256 } from './secrets.ts'
import {
  DELETE_OLD_SESSIONS,
  DELETE_SESSION,
  FIND_SESSION,
  INSERT_SESSION,
  OPEN_SESSIONS,
  REVOKE_SESSION,
  SESSION_SEEN,
  STORE_PERSON,
} from './statements.ts'

/** A user that the provider authenticated. */
export interface SignedIn {
  /** Issuer and subject. They identify a user permanently. */
  readonly id: string
  /** Display name. */
  readonly name: string
  /** Groups at the last login. */
  readonly groups: readonly string[]
}

/** A user with the age of the groups: the time since the last login. */
export interface Person extends SignedIn {
  readonly groupsAgeMs: number
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
  open(person: SignedIn): Promise<{ readonly secret: string; readonly session: Session }>
  /** Returns the session of a secret. A passive check does not count as a use. */
  find(secret: string, isPassive?: boolean): Promise<Session | undefined>
  close(secret: string): Promise<void>
  /** Lists the open sessions of all users, the last used first. */
  list(): Promise<readonly OpenSession[]>
  /** Ends a session. Returns false if there is none with this id. */
  revoke(id: string): Promise<boolean>
}

export type OpenSession = Output<'listSessions'>['sessions'][number]

/** 1 min between two updates of a used session. A session may end this much earlier, but never later. */
const SEEN_EVERY_MS = 60_000

interface SessionRow {
  readonly id: string
  readonly person_id: string
  readonly name: string
  readonly groups: readonly string[]
  readonly groups_age_ms: number
  readonly is_stale: boolean
}

interface ListedRow {
  readonly id: string
  readonly person_id: string
  readonly name: string
  readonly created_at: Date
  readonly seen_at: Date
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
      return { secret, session: { id, person: { ...person, groupsAgeMs: 0 } } }
    },
    async find(secret, isPassive = false) {
      const values = [sha256(secret), idleMs, mostMs, everyMs]
      const [found] = await run<SessionRow>(FIND_SESSION, values)
      if (found === undefined) return undefined
      const { id, person_id, name, groups, groups_age_ms: groupsAgeMs, is_stale } = found
      if (is_stale && !isPassive) await run(SESSION_SEEN, [id])
      return { id, person: { id: person_id, name, groups, groupsAgeMs } }
    },
    async close(secret) {
      await run(DELETE_SESSION, [sha256(secret)])
    },
    async list() {
      const rows = await run<ListedRow>(OPEN_SESSIONS, [idleMs, mostMs])
      return rows.map((row) => ({
        id: row.id,
        person: row.person_id,
        name: row.name,
        createdAt: row.created_at.getTime(),
        lastUsedAt: row.seen_at.getTime(),
      }))
    },
    async revoke(id) {
      return (await run(REVOKE_SESSION, [id])).length > 0
    },
  }
}
