import type { Output, Input } from '@redrive/api'
import type { Caller, Grant, RequestOrigin } from '../access/caller.ts'
import type { Sessions } from './sessions.ts'

/** The parts of a request that identify the caller. */
export interface Credentials {
  /** Names in lower case, as in Node. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly cookies: Readonly<Record<string, string | undefined>>
  readonly origin?: RequestOrigin
  /** Whether the check does not count as a use of the credential, so that a session can still become idle. */
  readonly isPassive?: boolean
}

export type Token = Output<'listTokens'>['tokens'][number]
export type NewToken = Output<'createToken'>
export type TokenRequest = Input<'createToken'>['body']

/**
 * API tokens of users. A token never has more permissions than its owner: every request intersects its grants with
 * the current grants of the owner.
 */
export interface Tokens {
  /** Creates a token. Rejects with a `ProblemError` if the caller lacks a requested permission. */
  create(caller: Caller, request: TokenRequest): Promise<NewToken>
  /** Lists the tokens of the caller. */
  list(caller: Caller): Promise<readonly Token[]>
  /** Revokes a token. Returns false if the caller has no such token. */
  revoke(caller: Caller, id: string): Promise<boolean>
  /** Lists the valid tokens of all users, for administrators. */
  listAll(): Promise<readonly Token[]>
  /** Revokes a token of any user. Returns false if it does not exist. */
  revokeAny(id: string): Promise<boolean>
}

/** Identifies callers by token or session. */
export interface Identity {
  /** Returns the caller, or undefined for invalid credentials. */
  identify(credentials: Credentials): Promise<Caller | undefined>
  /** Returns the CSRF token that every mutation of this session must send; undefined without a session. */
  csrfOf(caller: Caller): Promise<string | undefined>
  readonly tokens: Tokens
  /**
   * Returns the current permissions of a user who need not be signed in. `anyAge`: the groups of the last sign-in
   * count, however old they are. Default: only for `groupsMaxAge`.
   */
  grantsOf(person: string, options?: { readonly anyAge?: boolean }): Promise<readonly Grant[]>
  /** Sessions of all users, for administrators. */
  readonly sessions: Pick<Sessions, 'list' | 'revoke'>
}
