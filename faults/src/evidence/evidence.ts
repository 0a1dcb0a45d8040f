import type { Entry } from './history.ts'

/** The place where the broker held a message at the end. */
export type Place = 'source' | 'delay' | 'dlq' | 'quarantine'

export interface FoundMessage {
  readonly id: string
  readonly queue: string
  readonly place: Place
  /** Why it was dead-lettered, according to its headers. */
  readonly reason: string | undefined
  /** Whether the bytes equal the sent bytes. */
  readonly isWhole: boolean
}

/** Everything that the checker uses: the history, the broker's content and the effects. */
export interface Evidence {
  readonly entries: readonly Entry[]
  readonly found: readonly FoundMessage[]
  /** Number of effects of each message in the database. */
  readonly effects: ReadonlyMap<string, number>
  /**
   * The committed business facts, where a message is sent in a transaction with its fact. Both must
   * exist or neither, whatever response the producer got.
   */
  readonly committed?: ReadonlySet<string>
  /** Number of duplicates that the faults explain, when the server has its own rules for that. */
  readonly bound?: number
}

/** A promise that was not kept. */
export interface Violation {
  readonly rule: Rule
  /** The message it is about. */
  readonly id?: string
  readonly text: string
}

/** Returns a violation for each condition that is true. */
export const brokenIf = (
  ...rules: readonly (readonly [isBroken: boolean, rule: Rule, text: string])[]
): readonly Violation[] =>
  rules.flatMap(([isBroken, rule, text]) => (isBroken ? [{ rule, text }] : []))

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
  | 'ended with an error'
  | 'attack succeeded'
  | 'missing alert'
  | 'false alert'
  | 'wrong alert'
  | 'not resolved'

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
