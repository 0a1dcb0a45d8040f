import { readFileSync } from 'node:fs'
import type { Policy } from '@redrive/core'
import { Pool } from 'pg'
import type { UserEvent } from './events.ts'
import { log } from './log.ts'

export function openPool(url: string, { concurrency, timeoutMs }: Policy): Pool {
  const pool = new Pool({
    connectionString: url,
    // One connection for each concurrent attempt. With fewer, attempts would time out waiting for
    // each other.
    max: concurrency,
    // pg does not support AbortSignal. Without these limits a hanging query would keep its
    // connection forever.
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  })
  // Errors of idle connections. Without a listener the first outage would end the process.
  pool.on('error', (error) => log('warn', 'idle_connection_lost', { error }))
  return pool
}

/**
 * The table of profiles. Each event is one statement with the same effect when it runs twice and in
 * any order. Order can change, because later messages overtake a message that waits for its retry. So
 * this needs no transaction and no inbox. A handler that adds to a sum or writes to two systems
 * would need them.
 */
export class Profiles {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  apply({ type, data }: UserEvent): Promise<void> {
    switch (type) {
      case 'user.registered':
        return this.#run(REGISTER, personal(data))
      case 'user.updated':
        return this.#run(UPDATE, personal(data))
      case 'user.deleted':
        return this.#run(DELETE, [data.subject, data.occurredAt])
    }
  }

  createTable(): Promise<void> {
    return this.#run(readFileSync(new URL('../table.sql', import.meta.url), 'utf8'), [])
  }

  async #run(sql: string, values: readonly string[]): Promise<void> {
    await this.#pool.query(sql, [...values])
  }
}

type Personal = Extract<UserEvent, { type: 'user.updated' }>['data']

const personal = ({ subject, occurredAt, email, firstName, lastName }: Personal) => [
  subject,
  occurredAt,
  email,
  firstName,
  lastName,
]

/** An existing row came from this event or a later one. */
const REGISTER = `
  INSERT INTO profiles (subject, changed_at, email, first_name, last_name)
  VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (subject) DO NOTHING`

const UPDATE = `
  INSERT INTO profiles AS known (subject, changed_at, email, first_name, last_name)
  VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (subject) DO UPDATE
  SET changed_at = excluded.changed_at, email = excluded.email,
    first_name = excluded.first_name, last_name = excluded.last_name
  WHERE known.changed_at < excluded.changed_at AND NOT known.is_deleted`

const DELETE = `
  INSERT INTO profiles (subject, changed_at, is_deleted)
  VALUES ($1, $2, true)
  ON CONFLICT (subject) DO UPDATE
  SET changed_at = excluded.changed_at, is_deleted = true,
    email = NULL, first_name = NULL, last_name = NULL`
