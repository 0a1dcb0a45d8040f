import type { Evidence, Violation } from './evidence.ts'

/**
 * How thorough a run is. `smoke` takes about a minute and breaks each promise's worst case once,
 * `quick` is for every change, `full` is for the published figures.
 */
export type Scale = 'smoke' | 'quick' | 'full'

/** A value for each form; what is not part of `--smoke` needs none for it. */
export interface ByScale<T> {
  readonly smoke?: T
  readonly quick: T
  readonly full: T
}

/** Returns the value for a form. A form without one has that of `quick`. */
export const atScale = <T>({ smoke, quick, full }: ByScale<T>, scale: Scale): T =>
  scale === 'full' ? full : scale === 'quick' ? quick : (smoke ?? quick)

/** How many messages a scenario sends in each form. Without `smoke`, it is not part of that form. */
export type Messages = ByScale<number>

export interface Scenario<World> {
  readonly name: string
  /** The server it breaks, as `dev/services` knows it. */
  readonly service: string
  /** The server it breaks with `--smoke`. Default: `service`. */
  readonly smokeService?: string
  /** What is broken, and what is expected nevertheless. */
  readonly story: string
  readonly messages: Messages
  /** Breaks things under load and heals them. What is left to do then is the same for all. */
  play(world: World): Promise<void>
  /** Too long for `quick`, and much like another one. */
  readonly isOnlyFull?: boolean
  /** Figures of its own, for its line. */
  tell?(evidence: Evidence): string
  /** What the general rules cannot know. */
  check?(evidence: Evidence, world: World): readonly Violation[]
}

/** Returns the server that a scenario breaks in this form. */
export function serviceOf<S extends Scenario<never>>(
  { service, smokeService = service }: S,
  scale: Scale,
): S['service'] {
  return scale === 'smoke' ? smokeService : service
}

/** Whether a scenario is played in this form when the caller does not name it. */
export function isPartOf({ messages, isOnlyFull = false }: Scenario<never>, scale: Scale): boolean {
  if (scale === 'smoke') return messages.smoke !== undefined
  return scale === 'full' || !isOnlyFull
}
