import type { Action } from '@redrive/api/enums'

/** Permissions on sources. A caller has the sum of all grants. */
export interface Grant {
  readonly actions: readonly Action[]
  /** Names of sources; `*` matches any part of a name. */
  readonly sources: readonly string[]
}

/** An authenticated caller. */
export interface Caller {
  /** Id of the user. A token has the id of its owner. An approval by another person compares these ids. */
  readonly person: string
  /** Display name. */
  readonly name: string
  readonly via: 'session' | 'token' | 'development'
  readonly grants: readonly Grant[]
  /** An autonomous program. It can plan replays and never approve them. */
  readonly isAgent: boolean
  /** Id of the token or session; undefined in development. */
  readonly credential: string | undefined
  /** Where the request came from. Undefined outside of requests. */
  readonly origin?: RequestOrigin | undefined
}

export interface RequestOrigin {
  /** Address of the client, behind trusted proxies. */
  readonly address: string
  /** Id of the request, as in the log and in the header `X-Request-Id`. */
  readonly requestId: string
}
