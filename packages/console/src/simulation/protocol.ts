import type { Weather } from '@redrive/storm'

/** The request of the page to the worker. */
export interface SimulationRequest {
  /** Options of `consume()` as JSON. Empty: the default policy. */
  readonly policy: string
  readonly weather: Weather
  /** Name of the textbook policy to compare with. Undefined: none. */
  readonly compare: string | undefined
}

/** One value of the simulated policy, and what sets it. */
export interface PolicyRow {
  readonly name: string
  readonly value: string
  readonly setBy: 'options' | 'default' | 'simulator'
}

export interface Goals {
  readonly attemptsPerMessage: number
  readonly falseDeadLetters: number
  readonly drain: number
  readonly peak: number
}

/** The result of one policy. */
export interface SimulationResult {
  readonly title: string
  readonly attemptsPerMessage: number
  readonly falseDeadLetters: number
  /** Time to drain, as a multiple of the shortest possible time. Undefined: it does not drain. */
  readonly drainRatio: number | undefined
  /** Highest load, as a multiple of the arrivals. */
  readonly peak: number
  /** Calls in each second. */
  readonly load: readonly number[]
}

/** A message of the worker to the page, in this order: the policy, its result, the result of the other one, the end. */
export type SimulationReport =
  | {
      readonly kind: 'policy'
      readonly rows: readonly PolicyRow[]
      readonly goals: Goals
      readonly calmMs: number
    }
  | { readonly kind: 'own'; readonly result: SimulationResult }
  | { readonly kind: 'other'; readonly result: SimulationResult }
  | { readonly kind: 'end' }
  | { readonly kind: 'problem'; readonly text: string }
