import type { StoreScenarioContext } from './stage.ts'

/** One guarantee of every store, as a scenario that fails when it does not hold. */
export interface StoreScenario {
  /** Its name in the report and in `skip`. */
  readonly name: string
  readonly play: (context: StoreScenarioContext) => Promise<void>
  /** An option that the scenario needs. Without it, the scenario must be skipped with a reason. */
  readonly needs?: 'crash' | 'bounded'
}
