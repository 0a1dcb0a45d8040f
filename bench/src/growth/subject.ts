// What a series measures, at which sizes, and how.
import type { Overrides } from '../comparison.ts'

/** Costs by the last part of the name of a series. Several are repeated measurements. */
export type Costs = Readonly<Record<string, readonly number[]>>

/** An open subject: it keeps what all sizes need, such as a connection. */
export interface Stage {
  /** Compiles the code before the first size. Otherwise the smallest size would pay for it. */
  warmUp?(): Promise<void>
  /** Called with all sizes in ascending order, once in each round. */
  measure(size: number): Promise<Costs>
  close(): Promise<void>
}

/** What grows. Its series are measured together. */
export interface Subject {
  /** First part of the names of its series. */
  readonly name: string
  /** What the sizes count, for headings. */
  readonly of: string
  readonly sizes: readonly number[]
  readonly quickSizes: readonly number[]
  /**
   * Number of rounds over all sizes. With several, a disturbance affects all sizes alike. One if a size
   * takes long to prepare: then it has all its measurements in one round.
   */
  readonly rounds: number
  readonly quickRounds: number
  readonly open: (overrides: Overrides) => Promise<Stage>
}

export interface Series {
  readonly subject: Subject
  /** Last part of the name. */
  readonly name: string
  readonly shows: string
  readonly unit: string
  /** The largest exponent that is accepted. */
  readonly bound: number
}

export const nameOf = ({ subject, name }: Series): string => `${subject.name}.${name}`

export const sizesOf = ({ sizes, quickSizes }: Subject, quick: boolean): readonly number[] =>
  quick ? quickSizes : sizes

export const roundsOf = ({ rounds, quickRounds }: Subject, quick: boolean): number =>
  quick ? quickRounds : rounds
