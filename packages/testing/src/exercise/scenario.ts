import type { Capabilities } from '@redrive/runtime'
import type { Stage } from './stage.ts'
import type { WorldAbility } from './world.ts'

/** One guarantee every transport gives, as a play that fails when it does not. */
export interface Scenario {
  /** How it is reported, and how it is named in `skip`. */
  readonly name: string
  readonly play: (stage: Stage) => Promise<void>
  /** Why a transport with these capabilities is excused; undefined when it is not. */
  readonly excuse?: (capabilities: Capabilities) => string | undefined
  /** The part of the world that it cannot do without; `world.cannot` may give the reason why it is missing. */
  readonly needs?: WorldAbility
  /** Every other scenario needs what it shows; when it fails, they are skipped. */
  readonly isBasic?: true
  /** It disturbs other worlds on the same broker, or fails on a busy machine: left out of the stress run. */
  readonly isAlone?: true
}
