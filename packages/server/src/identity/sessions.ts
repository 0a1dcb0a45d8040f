import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { runOn } from '../database.ts'
import { newSecret, sha256 } from './secrets.ts'

/** Somebody the provider vouched for. */
export interface Person {
  /** Issuer and subject: the same for one human being, and never another's. */
  readonly id: string
  /** For people to read. */
  readonly name: string
  /** As of the last login. */
  readonly groups: readonly string[]
}

export interface Session {
  readonly id: string
  readonly person: Person
}

export interface SessionLimits {
  /** It ends when it is not used for so long. */
  readonly idleMs: number
  /** It ends after so long, used or not. */
  readonly mostMs: number
}

export interface Sessions {
  /** A new one, always with a new secret: one that was known before a login is worth nothing after it. */
  open(person: Person): Promise<{ readonly secret: string; readonly session: Session }>
  find(secret: string): Promise<Session | undefined>
  close(secret: string): Promise<void>
}

/** 1 min: a session in use is written this often at most. It may end that much early, never late. */
const SEEN_EVERY_MS = 60_000

const KEEP_PERSON = `insert into redrive_server.person (id, name, groups) values ($1, $2, $3)
on conflict (id) do update set name = excluded.name, groups = excluded.groups, logged_in_at = now()`

const FIND = `select session.id, person.id as person_id, person.name, person.groups,
  seen_at < now() - $4 * interval '1 ms' as is_stale
from redrive_server.session join redrive_server.person on person.id = person_id
where secret_hash = $1
  and seen_at > now() - $2 * interval '1 ms' and created_at > now() - $3 * interval '1 ms'`

interface Found {
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
      await run(KEEP_PERSON, [person.id, person.name, person.groups])
      // Those that are over go when someone comes: nobody has to remember to tidy up.
      await run(
        `delete from redrive_server.session where created_at < now() - $1 * interval '1 ms'`,
        [mostMs],
      )
      await run(
        'insert into redrive_server.session (secret_hash, id, person_id) values ($1, $2, $3)',
        [sha256(secret), id, person.id],
      )
      return { secret, session: { id, person } }
    },
    async find(secret) {
      const [found] = await run<Found>(FIND, [sha256(secret), idleMs, mostMs, everyMs])
      if (found === undefined) return undefined
      const { id, person_id, name, groups, is_stale } = found
      if (is_stale)
        await run('update redrive_server.session set seen_at = now() where id = $1', [id])
      return { id, person: { id: person_id, name, groups } }
    },
    async close(secret) {
      await run('delete from redrive_server.session where secret_hash = $1', [sha256(secret)])
    },
  }
}
