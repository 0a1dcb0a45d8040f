import type { Answer, Input } from '@redrive/api'
import type { Caller } from '../access/caller.ts'

/** Of a request, what says who asks. */
export interface Credentials {
  /** Names in lower case, as Node has them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly cookies: Readonly<Record<string, string | undefined>>
}

export type Token = Answer<'listTokens'>['tokens'][number]
export type NewToken = Answer<'createToken'>
export type TokenRequest = Input<'createToken'>['body']

/**
 * The tokens of people. A token never may more than its owner: who asks is whose it is, and each time it is
 * shown its grants are met with what the owner may do at that moment.
 */
export interface Tokens {
  /** Rejects with a `Refusal` what the caller may not give away. */
  create(caller: Caller, request: TokenRequest): Promise<NewToken>
  /** Those of the caller. */
  list(caller: Caller): Promise<readonly Token[]>
  /** False: the caller has no such token. */
  revoke(caller: Caller, id: string): Promise<boolean>
}

/** Who asks, by a token or a session. */
export interface Identity {
  /** Undefined: nobody who is known. */
  identify(credentials: Credentials): Promise<Caller | undefined>
  /** What every mutation of this session has to show; undefined when the caller has no session. */
  csrfOf(caller: Caller): Promise<string | undefined>
  readonly tokens: Tokens
}
