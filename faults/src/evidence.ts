import type { Entry } from './history.ts'

/** Where the broker held a message when everything was over. */
export type Place = 'source' | 'delay' | 'dlq' | 'quarantine'

export interface Found {
  readonly id: string
  readonly queue: string
  readonly place: Place
  /** Why it was given up, as its own headers say. */
  readonly reason: string | undefined
  /** The bytes are those the producer sent. */
  readonly isWhole: boolean
}

/** What happened, what the broker holds and what took effect: all that the checker knows. */
export interface Evidence {
  readonly entries: readonly Entry[]
  readonly found: readonly Found[]
  /** How often each message took effect, as the database says. */
  readonly effects: ReadonlyMap<string, number>
  /**
   * Where a message is sent in a transaction with the business fact it tells of: the facts that are
   * there. Fact and message must both be there or neither, whatever the producer was told.
   */
  readonly committed?: ReadonlySet<string>
  /** How many duplicates the faults explain, where the server's rules for that are its own. */
  readonly bound?: number
}

export interface Violation {
  readonly rule: Rule
  readonly id?: string
  readonly text: string
}

export type Rule =
  | 'lost'
  | 'unexpected'
  | 'duplicates over the bound'
  | 'effect duplicated'
  | 'not fenced'
  | 'false dead letter'
  | 'in the wrong place'
  | 'changed'
  | 'committed early'
  | 'copied twice'
  | 'out of order'
  | 'not drained'
  | 'slow recovery'
  | 'storm'
  | 'too slow'
  | 'scenario'
  | 'died by itself'
  | 'attack succeeded'

export interface Figures {
  readonly attempted: number
  readonly acknowledged: number
  readonly ok: number
  readonly lost: number
  readonly duplicated: number
  readonly recovered: number
  readonly unexpected: number
  readonly bound: number
  readonly effectDuplicates: number
  readonly falseDeadLetters: number
  readonly recoverySeconds: number | undefined
}

export interface Verdict {
  readonly figures: Figures
  readonly violations: readonly Violation[]
}
