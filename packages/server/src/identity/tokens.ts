import { randomUUID, timingSafeEqual } from 'node:crypto'
import type { Action } from '@redrive/api'
import type { Pool } from 'pg'
import type { Caller, Grant } from '../access/caller.ts'
import { Refusal } from '../access/refusal.ts'
import { runOn, type Run } from '../database.ts'
import { meet, notTheirs } from './grants.ts'
import type { Token, TokenRequest, Tokens } from './port.ts'
import { newSecret, sha256 } from './secrets.ts'
import type { Person } from './sessions.ts'

/** What a person may do at this moment. */
export type GrantsNow = (person: Person) => readonly Grant[]

/** 100: a person who needs more has forgotten some. */
const TOKENS_MAX = 100
/** 1 min: the use of a token is written down this often at most. */
const USED_EVERY_MS = 60_000
/** Compared with when there is no such token, so that it takes as long. */
const NO_HASH = Buffer.alloc(32)

interface TokenRow {
  readonly id: string
  readonly secret_hash: Buffer
  readonly name: string
  readonly person_id: string
  readonly person_name: string
  readonly groups: readonly string[]
  readonly is_agent: boolean
  readonly actions: readonly Action[]
  readonly sources: readonly string[]
  readonly created_at: Date
  readonly expires_at: Date
  readonly last_used_at: Date | null
  readonly is_stale: boolean
}

const SELECT = `select token.*, person.name as person_name, person.groups,
  coalesce(last_used_at < now() - ${USED_EVERY_MS} * interval '1 ms', true) as is_stale
from redrive_server.token join redrive_server.person on person.id = person_id`

/** The owner's row is there unless nobody logs in here. */
const CREATE = `with owner as (
  insert into redrive_server.person (id, name, groups) values ($4, $5, '{}') on conflict (id) do nothing
)
insert into redrive_server.token (id, secret_hash, name, person_id, is_agent, actions, sources, expires_at)
values ($1, $2, $3, $4, $6, $7, $8, now() + $9 * interval '1 day')`

/** What `rdv_…` stands for; undefined when it is unknown, over or revoked. */
export async function callerOfToken(
  pool: Pool,
  text: string,
  grantsNow: GrantsNow,
): Promise<Caller | undefined> {
  const shown = parseToken(text)
  if (shown === undefined) return undefined
  const run = runOn(pool)
  const [row] = await run<TokenRow>(`${SELECT} where token.id = $1 and expires_at > now()`, [
    shown.id,
  ])
  const isRight = timingSafeEqual(sha256(shown.secret), row?.secret_hash ?? NO_HASH)
  if (row === undefined || !isRight) return undefined
  if (row.is_stale) {
    await run('update redrive_server.token set last_used_at = now() where id = $1', [row.id])
  }
  return callerOf(row, grantsNow)
}

function callerOf(row: TokenRow, grantsNow: GrantsNow): Caller {
  const owner = { id: row.person_id, name: row.person_name, groups: row.groups }
  return {
    person: owner.id,
    name: `${owner.name} (${row.name})`,
    via: 'token',
    grants: meet(grantsNow(owner), row),
    isAgent: row.is_agent,
    credential: row.id,
  }
}

/** `rdv_`, the id without dashes, the secret. The beginning is what scanners for leaked secrets look for. */
const SHAPE = /^rdv_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})_([\w-]{43})$/

function parseToken(text: string): { readonly id: string; readonly secret: string } | undefined {
  const match = SHAPE.exec(text)
  if (match === null) return undefined
  return { id: match.slice(1, 6).join('-'), secret: match[6] ?? '' }
}

export function tokensIn(pool: Pool): Tokens {
  const run = runOn(pool)
  return {
    async create(caller, request) {
      mustBeTheirs(caller, request)
      await mustHaveRoom(run, caller)
      const id = randomUUID()
      const secret = newSecret()
      const { name, isAgent = false, actions, sources, days } = request
      const owner = [caller.person, caller.name]
      const values = [id, sha256(secret), name, ...owner, isAgent, actions, sources, days]
      await run(CREATE, values)
      const [row] = await run<TokenRow>(`${SELECT} where token.id = $1`, [id])
      return {
        ...tokenOf(row as TokenRow),
        secret: `rdv_${id.replaceAll('-', '')}_${secret}`,
      }
    },
    async list(caller) {
      const rows = await run<TokenRow>(
        `${SELECT} where person_id = $1 and ($2::uuid is null or token.id = $2) order by created_at desc, token.id`,
        [caller.person, onlyItself(caller)],
      )
      return rows.map(tokenOf)
    },
    async revoke(caller, id) {
      const rows = await run(
        'delete from redrive_server.token where id = $1 and person_id = $2 and ($3::uuid is null or id = $3) returning id',
        [id, caller.person, onlyItself(caller)],
      )
      return rows.length > 0
    },
  }
}

/** A token knows of no other token of its owner: it may be a narrow one in the hands of a program. */
const onlyItself = ({ via, credential }: Caller) => (via === 'token' ? (credential ?? null) : null)

function mustBeTheirs(caller: Caller, { actions, sources }: TokenRequest): void {
  if (caller.via === 'token') {
    throw new Refusal(
      'forbidden',
      'A token cannot make tokens: one that leaked could be replaced for ever. Log in and make it there.',
    )
  }
  const problems = notTheirs(caller.grants, { actions, sources })
  if (problems.length === 0) return
  throw new Refusal('invalid', 'A token may only do what you may do: ask for less.', { problems })
}

async function mustHaveRoom(run: Run, { person }: Caller): Promise<void> {
  await run('delete from redrive_server.token where person_id = $1 and expires_at < now()', [
    person,
  ])
  const [row] = await run<{ count: string }>(
    'select count(*) from redrive_server.token where person_id = $1',
    [person],
  )
  if (Number(row?.count) < TOKENS_MAX) return
  throw new Refusal('conflict', `You have ${TOKENS_MAX} tokens: revoke one that is not used.`)
}

function tokenOf(row: TokenRow): Token {
  const { id, name, person_id, is_agent, actions, sources, last_used_at } = row
  return {
    id,
    name,
    person: person_id,
    isAgent: is_agent,
    grants: [{ actions: [...actions], sources: [...sources] }],
    createdAt: row.created_at.getTime(),
    expiresAt: row.expires_at.getTime(),
    ...(last_used_at === null ? {} : { lastUsedAt: last_used_at.getTime() }),
  }
}
