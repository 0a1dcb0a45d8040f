import type { Action } from '@redrive/api'

/** Some actions, with some sources. Grants add up; none takes away. */
export interface Grant {
  readonly actions: readonly Action[]
  /** Names of sources; `*` stands for any part of a name. */
  readonly sources: readonly string[]
}

/** Who asks. */
export interface Caller {
  /**
   * Always the same for one human being, however they ask: a token counts as its owner. Four eyes means two
   * different ones of these.
   */
  readonly person: string
  /** For people to read. */
  readonly name: string
  readonly via: 'session' | 'token' | 'development'
  readonly grants: readonly Grant[]
  /** A program that decides by itself: it plans, and never approves. */
  readonly isAgent: boolean
  /** Of the token or session that was shown; undefined in development. */
  readonly credential: string | undefined
}
