import { chosenOf, type Drill, judged, playInTurn } from '../drill.ts'
import type { Choice } from '../play.ts'
import { ATTACKS } from './attacks/all.ts'
import { endTarget } from './attacks/target.ts'
import { REPLICAS } from './replicas.ts'

const DRILLS: readonly Drill[] = [REPLICAS, ...ATTACKS]

/** One after the other; true when no promise was broken. */
export async function playServer(choice: Choice): Promise<boolean> {
  const chosen = chosenOf(DRILLS, choice)
  if (chosen === undefined) return false
  try {
    return judged('server', await playInTurn('server', chosen, choice), choice.print)
  } finally {
    await endTarget()
  }
}
