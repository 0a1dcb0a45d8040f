import { chosenOf, type Drill, judged, playInTurn } from '../drill.ts'
import type { Choice } from '../play.ts'
import { ATTACKS } from './attacks/all.ts'
import { endTarget } from './attacks/target.ts'
import { REPLICAS } from './replicas.ts'

export const SERVER_DRILLS: readonly Drill[] = [REPLICAS, ...ATTACKS]

/** One after the other; true when no promise was broken. */
export async function playServer(choice: Choice): Promise<boolean> {
  const chosen = chosenOf(SERVER_DRILLS, choice)
  try {
    return judged('server', await playInTurn('server', chosen, choice), choice.print)
  } finally {
    await endTarget()
  }
}
