import type { Capabilities } from '@redrive/runtime'
import type { ScenarioContext } from './scenario-context.ts'
import type { WorldAbility } from './world.ts'

/** One guarantee of every transport, as a scenario that fails when it does not hold. */
export interface Scenario {
  /** Its name in the report and in `skip`. */
  readonly name: string
  readonly play: (context: ScenarioContext) => Promise<void>
  /** Returns why a transport with these capabilities is exempt; undefined when it is not. */
  readonly excuse?: (capabilities: Capabilities) => string | undefined
  /** The part of the fixture that it needs; `world.cannot` may give the reason why it is missing. */
  readonly needs?: WorldAbility
  /** True when every other scenario depends on it. When it fails, they are skipped. */
  readonly isBasic?: true
  /** True when it disturbs other fixtures on the same broker, or fails on a busy machine. The stress run omits it. */
  readonly isAlone?: true
}
