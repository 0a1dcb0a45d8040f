import type { Rule } from '../evidence.ts'
import type { Scale } from '../scenario.ts'

/** What a drill found: what is wrong, and what is worth telling. */
export interface DrillResult {
  readonly events: number
  readonly told: readonly string[]
  readonly broken: readonly { readonly rule: Rule; readonly text: string }[]
}

export interface DrillWorld {
  readonly scale: Scale
  /** A folder of its own, gone afterwards when all went well. */
  readonly folder: string
  readonly say: (text: string) => void
}

/** Something that goes wrong around an emitter, played on real sockets, files and processes. */
export interface Drill {
  readonly name: string
  readonly story: string
  play(world: DrillWorld): Promise<DrillResult>
}

/** A broken promise for each that holds. */
export const brokenIf = (
  ...rules: readonly (readonly [isBroken: boolean, rule: Rule, text: string])[]
): DrillResult['broken'] =>
  rules.flatMap(([isBroken, rule, text]) => (isBroken ? [{ rule, text }] : []))

/** The value that so many of a hundred stay below. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  const index = Math.ceil((sorted.length * percent) / 100) - 1
  return sorted[Math.max(0, index)] ?? 0
}

/** The most moments that lie within one second of each other. */
export function mostInOneSecond(moments: readonly number[]): number {
  const sorted = moments.toSorted((one, other) => one - other)
  let first = 0
  let most = 0
  for (const [index, at] of sorted.entries()) {
    while (at - (sorted[first] as number) >= 1_000) first += 1
    most = Math.max(most, index - first + 1)
  }
  return most
}
