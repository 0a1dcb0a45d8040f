import type { Mutant } from '../harness/mutant.ts'
import { APPROVAL } from './mutants/approval.ts'
import { IDENTITY } from './mutants/identity.ts'
import { FORGED, MASKS } from './mutants/masks.ts'
import { OTHER_SITES } from './mutants/other-sites.ts'
import { OUTGOING } from './mutants/outgoing.ts'
import { PROTOCOLS } from './mutants/protocols.ts'
import { REPLAYS } from './mutants/replays.ts'
import { SIZES } from './mutants/sizes.ts'
import { STATEMENTS } from './mutants/statements.ts'

/** Builds of the server without a defence, by area. */
export const MUTANTS: readonly Mutant[] = [
  ...OTHER_SITES,
  ...STATEMENTS,
  ...REPLAYS,
  ...APPROVAL,
  ...OUTGOING,
  ...IDENTITY,
  ...SIZES,
  ...MASKS,
  ...FORGED,
  ...PROTOCOLS,
]
