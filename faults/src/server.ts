import type { Evidence } from './evidence.ts'
import type { World } from './world.ts'

/** The server under test, as a run needs it when the scenario has been played. */
export interface Server<W extends World> {
  /** How far it has come. May reject while something is still on its way up. */
  look(world: W): Promise<Seen>
  /** All has been quiet for long although something is missing: does the server say so too? */
  isOver(world: W): Promise<boolean>
  countEffects(world: W): Promise<number>
  /** Everything that is known, when all consumers have gone. */
  collect(world: W): Promise<Evidence>
  /** All went well: nothing of the run is needed any more. */
  forget(world: W): Promise<void>
}

export interface Seen {
  /** Every acknowledged message is where it belongs. */
  readonly hasAll: boolean
  /** Nothing waits that will not go on waiting. */
  readonly isQuiet: boolean
}
