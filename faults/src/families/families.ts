import { type SeededRandom, seededRandom } from '@redrive/testing'
import { BODIES } from './bodies.ts'
import { CODE } from './code.ts'
import { DATABASES } from './databases.ts'
import { DOMAIN } from './domain.ts'
import { drawFrom } from './draw.ts'
import type { Families, Family, Sample } from './family.ts'
import { FOREIGN } from './foreign.ts'
import { HELD_OUT } from './held-out.ts'
import { NAMES } from './names.ts'
import { NETWORK } from './network.ts'
import { OTHERS } from './others.ts'

const listed = (families: Families): readonly Family[] =>
  Object.entries(families).map(([name, sample]) => ({ name, sample }))

/** Families that were known when the rules of the signature were written. */
export const SEEN: readonly Family[] = [
  ...[DATABASES, NETWORK, CODE, DOMAIN, FOREIGN, OTHERS],
  ...[NAMES, BODIES],
].flatMap(listed)

/** Families that were not known then. */
export const UNSEEN: readonly Family[] = listed(HELD_OUT)

/** Returns the same failure for the same seed, in every process. */
export function sampleOf(family: Family, seed: number): Sample {
  const random: SeededRandom = seededRandom(seed)
  return family.sample(drawFrom(random))
}
