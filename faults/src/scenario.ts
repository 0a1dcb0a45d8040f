import type { Evidence, Violation } from './evidence.ts'

/** How thorough: `quick` for every change, `full` for the published figures. */
export type Scale = 'quick' | 'full'

export interface Scenario<World> {
  readonly name: string
  /** The server it breaks, as `dev/services` knows it. */
  readonly service: string
  /** What is broken, and what is expected nevertheless. */
  readonly story: string
  readonly messages: Readonly<Record<Scale, number>>
  /** Breaks things under load and heals them. What is left to do then is the same for all. */
  play(world: World): Promise<void>
  /** Too long for `quick`, and much like another one. */
  readonly isOnlyFull?: boolean
  /** Figures of its own, for its line. */
  tell?(evidence: Evidence): string
  /** What the general rules cannot know. */
  check?(evidence: Evidence, world: World): readonly Violation[]
}
