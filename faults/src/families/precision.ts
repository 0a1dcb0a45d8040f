import { classify, cycleFromReport } from '@redrive/core'
import { type Family, type Sample } from './family.ts'
import { sampleOf } from './families.ts'

/** The grouping result of one family. */
export interface FamilyScore {
  readonly name: string
  readonly samples: number
  /** Number of samples outside the group where most of the family is. */
  readonly split: number
  /** Number of samples in a group where most samples are of another family. */
  readonly merged: number
}

/** Returns the signature of a dead letter with this failure, with all families in one source. */
export function signatureOfSample(sample: Sample): string {
  if ('told' in sample) return cycleFromReport(sample.told).history[0]?.signature ?? ''
  const options = { rules: [], handler: 'orders', includeStack: false, now: 0 }
  return classify(sample.thrown, options).signature
}

/** Scores each family among the others, with `samples` of each. The seeds follow `seed`. */
export function precisionOf(
  families: readonly Family[],
  samples: number,
  seed: number,
): readonly FamilyScore[] {
  const signed = families.map((family) =>
    Array.from({ length: samples }, (_, at) => signatureOfSample(sampleOf(family, seed + at))),
  )
  return scoresOf(
    families.map(({ name }) => name),
    signed,
  )
}

/** Scores known groups: for each family, the group of each sample. */
export function scoresOf(
  names: readonly string[],
  groups: readonly (readonly string[])[],
): readonly FamilyScore[] {
  const counts = groups.map(counted)
  return names.map((name, index) => {
    const own = counts[index] ?? new Map<string, number>()
    const samples = groups[index]?.length ?? 0
    const split = samples - Math.max(...own.values())
    const rivals = counts.filter((_, at) => at !== index)
    const isLost = (signature: string, count: number) =>
      rivals.some((rival) => (rival.get(signature) ?? 0) >= count)
    const merged = [...own].reduce((sum, [key, count]) => sum + (isLost(key, count) ? count : 0), 0)
    return { name, samples, split, merged }
  })
}

/** Returns the share of samples in a wrong group, split off or merged. */
export function wrongShare(scores: readonly FamilyScore[]): number {
  const wrong = scores.reduce((sum, { split, merged }) => sum + split + merged, 0)
  return wrong / scores.reduce((sum, { samples }) => sum + samples, 0)
}

function counted(signatures: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const one of signatures) counts.set(one, (counts.get(one) ?? 0) + 1)
  return counts
}
