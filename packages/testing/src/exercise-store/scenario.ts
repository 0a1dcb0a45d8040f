import type { StoreStage } from './stage.ts'

/** One guarantee every store gives, as a play that fails when it does not. */
export interface StoreScenario {
  /** How it is reported, and how it is named in `skip`. */
  readonly name: string
  readonly play: (stage: StoreStage) => Promise<void>
  /** What only some can do; without it the scenario must be skipped with a reason. */
  readonly needs?: 'crash' | 'bounded'
}
