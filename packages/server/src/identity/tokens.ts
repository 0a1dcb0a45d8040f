import { randomUUID, timingSafeEqual } from 'node:crypto'
import type { Action } from '@redrive/api/enums'
import type { Pool } from 'pg'
import type { Caller, Grant } from '../access/caller.ts'
import { ProblemError } from '../access/problem-error.ts'
import { runOn, type RunSql } from '../database.ts'
import { meet, notTheirs } from './grants.ts'
import type { Token, TokenRequest, Tokens } from './port.ts'
import { newSecret, sha256 } from './secrets.ts'
import type { Person } from './sessions.ts'
import {
  ALL_TOKENS,
  COUNT_TOKENS,
  DELETE_OLD_TOKENS,
  DELETE_TOKEN,
  INSERT_TOKEN,
  REVOKE_TOKEN,
  TOKEN,
  TOKEN_USED,
  TOKENS_OF_PERSON,
  VALID_TOKEN,
} from './statements.ts'

/** Returns the current grants of a user. */
export type GrantsNow = (person: Person) => readonly Grant[]

/** 100 tokens per user. */
const TOKENS_MAX = 100
/** Compared with for an unknown token, so that the check takes the same time. */
const NO_HASH = Buffer.alloc(32)

interface TokenRow {
  readonly id: string
  readonly secret_hash: Buffer
  readonly name: string
  readonly person_id: string
  readonly person_name: string
  readonly groups: readonly string[]
  readonly groups_age_ms: number
  readonly is_agent: boolean
  readonly actions: readonly Action[]
  readonly sources: readonly string[]
  readonly created_at: Date
  readonly expires_at: Date
  readonly last_used_at: Date | null
  readonly is_stale: boolean
}

/** Returns the caller of a token, or undefined if it is unknown, expired or revoked, or has no permissions left. */
export async function callerOfToken(
  pool: Pool,
  text: string,
  grantsNow: GrantsNow,
  isPassive = false,
): Promise<Caller | undefined> {
  const token = parseToken(text)
  if (token === undefined) return undefined
  const run = runOn(pool)
  const [row] = await run<TokenRow>(VALID_TOKEN, [token.id])
  const isRight = timingSafeEqual(sha256(token.secret), row?.secret_hash ?? NO_HASH)
  if (row === undefined || !isRight) return undefined
  if (row.is_stale && !isPassive) await run(TOKEN_USED, [row.id])
  const caller = callerOf(row, grantsNow)
  return caller.grants.length === 0 ? undefined : caller
}

function callerOf(row: TokenRow, grantsNow: GrantsNow): Caller {
  const { person_id: id, person_name: name, groups, groups_age_ms: groupsAgeMs } = row
  const owner = { id, name, groups, groupsAgeMs }
  return {
    person: owner.id,
    name: `${owner.name} (${row.name})`,
    via: 'token',
    grants: meet(grantsNow(owner), row),
    isAgent: row.is_agent,
    credential: row.id,
  }
}

/** The format of a token: `rdv_`, the id without dashes, the secret. Secret scanners search for the prefix. */
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
      requireOwnPermissions(caller, request)
      await requireTokenLimit(run, caller)
      const id = randomUUID()
      const secret = newSecret()
      const { name, isAgent = false, actions, sources, days } = request
      const owner = [caller.person, caller.name]
      const values = [id, sha256(secret), name, ...owner, isAgent, actions, sources, days]
      await run(INSERT_TOKEN, values)
      const [row] = await run<TokenRow>(TOKEN, [id])
      return {
        ...tokenOf(row as TokenRow),
        secret: `rdv_${id.replaceAll('-', '')}_${secret}`,
      }
    },
    async listAll() {
      return (await run<TokenRow>(ALL_TOKENS)).map(tokenOf)
    },
    async revokeAny(id) {
      return (await run(REVOKE_TOKEN, [id])).length > 0
    },
    async list(caller) {
      const rows = await run<TokenRow>(TOKENS_OF_PERSON, [caller.person, onlyItself(caller)])
      return rows.map(tokenOf)
    },
    async revoke(caller, id) {
      const rows = await run(DELETE_TOKEN, [id, caller.person, onlyItself(caller)])
      return rows.length > 0
    },
  }
}

/** Limits a token to itself: a program with a token must not see or revoke the owner's other tokens. */
const onlyItself = ({ via, credential }: Caller) => (via === 'token' ? (credential ?? null) : null)

function requireOwnPermissions(caller: Caller, { actions, sources }: TokenRequest): void {
  if (caller.via === 'token') {
    throw new ProblemError(
      'forbidden',
      'A token cannot create tokens, because a leaked token could renew itself forever. Log in and create the token in a session.',
    )
  }
  const problems = notTheirs(caller.grants, { actions, sources })
  if (problems.length === 0) return
  const detail = 'A token cannot have permissions that you do not have. Request fewer permissions.'
  throw new ProblemError('invalid', detail, { problems })
}

async function requireTokenLimit(run: RunSql, { person }: Caller): Promise<void> {
  await run(DELETE_OLD_TOKENS, [person])
  const [row] = await run<{ count: string }>(COUNT_TOKENS, [person])
  if (Number(row?.count) < TOKENS_MAX) return
  throw new ProblemError('conflict', `You have ${TOKENS_MAX} tokens. Revoke an unused one first.`)
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
