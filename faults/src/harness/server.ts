import type { Evidence } from '../evidence/evidence.ts'
import type { World } from './world.ts'

/** Access to the server under test after the scenario was played. */
export interface Server<W extends World> {
  /** Returns the current progress. May reject while a server is still starting. */
  look(world: W): Promise<Progress>
  /**
   * Called when nothing changes although messages are missing. Returns whether the server confirms
   * that nothing will come.
   */
  isOver(world: W): Promise<boolean>
  countEffects(world: W): Promise<number>
  /** Collects all evidence after all consumers have ended. */
  collect(world: W): Promise<Evidence>
  /** Deletes everything of a successful run. */
  forget(world: W): Promise<void>
}

export interface Progress {
  /** Whether every acknowledged message is where it belongs. */
  readonly hasAll: boolean
  /** Whether no message is waiting, except messages that must keep waiting. */
  readonly isQuiet: boolean
}
