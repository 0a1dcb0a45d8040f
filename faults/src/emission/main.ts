import { chosenOf, type Drill, judged, playInTurn } from '../drill.ts'
import type { Choice } from '../play.ts'
import { jobs } from './jobs.ts'
import { kills } from './kills.ts'
import { outage } from './outage.ts'
import { rateLimit } from './rate-limit.ts'

export const EMISSION_DRILLS: readonly Drill[] = [outage, kills, rateLimit, jobs]

/** Plays the drills one after the other; true when no promise was broken. */
export async function playEmission(choice: Choice): Promise<boolean> {
  const chosen = chosenOf(EMISSION_DRILLS, choice)
  return judged('emission', await playInTurn('emission', chosen, choice), choice.print)
}
