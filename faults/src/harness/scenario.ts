import type { Figures, Violation } from '../evidence/evidence.ts'

/**
 * How thorough a run is. `smoke` takes about a minute and plays the worst case of each promise
 * once. `quick` is for every change, and `full` is for the published figures.
 */
export type Scale = 'smoke' | 'quick' | 'full'

/** A value for each form. It has no `smoke` value when it is not part of `--smoke`. */
export interface ByScale<T> {
  readonly smoke?: T
  readonly quick: T
  readonly full: T
}

/** Returns the value for a form; without one, the value for `quick`. */
export const atScale = <T>({ smoke, quick, full }: ByScale<T>, scale: Scale): T =>
  scale === 'full' ? full : scale === 'quick' ? quick : (smoke ?? quick)

/** An experiment that breaks real servers, files or processes, and judges the result. */
export interface Scenario {
  readonly name: string
  /** The fault, and the expected result despite it. */
  readonly story: string
  /** Whether it is part of `--smoke`. Default false. */
  readonly isInSmoke?: boolean
  /** Whether `quick` leaves it out: it takes long and resembles another one. Default false. */
  readonly isOnlyFull?: boolean
  /**
   * Returns its lane. Lanes are played concurrently, the scenarios of one lane in sequence.
   * Scenarios without a lane measure rates, so they are played alone, after the lanes.
   */
  lane?(scale: Scale): string
  play(session: Session): Promise<Result>
}

/** Settings of one played scenario. */
export interface Session {
  readonly scale: Scale
  /** Number of messages that replaces the scenarios' own numbers. */
  readonly messages: number | undefined
  /** Whether it ends at the first broken rule or without progress, as a mutant run needs. */
  readonly stopAtFirst: boolean
  /** A separate folder. It stays until the next run of the scenario. */
  readonly folder: string
  readonly say: (text: string) => void
}

/** The result of a scenario: figures and broken promises. */
export interface Result {
  readonly events: number
  readonly figures: readonly string[]
  readonly broken: readonly Violation[]
  /** Counts for the table at the end of a run. */
  readonly counts?: Figures
  /** The row of the subject's own table. */
  readonly row?: readonly string[]
}

/** The result of a scenario that was played. */
export interface Played extends Result {
  readonly scenario: string
  readonly seconds: number
  readonly folder: string
}

export const isGood = ({ broken }: Result): boolean => broken.length === 0

/** Returns a failed result for a scenario that did not finish. */
export const notPlayed = (error: unknown, events = 0): Result => ({
  events,
  figures: ['did not finish'],
  broken: [{ rule: 'scenario', text: textOf(error) }],
})

export const textOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)

/** Whether a scenario is played in this form when the caller does not name it. */
export function isPartOf(
  { isInSmoke = false, isOnlyFull = false }: Scenario,
  scale: Scale,
): boolean {
  return scale === 'smoke' ? isInSmoke : scale === 'full' || !isOnlyFull
}
