import type { DeadLetter, Quarantine } from '@redrive/core'
import type { RunSql } from '../../database.ts'
import type { Proof, ProofReason, ReplayRequest } from '../run/options.ts'
import type { Candidate } from './gates.ts'
import { HAS_CONFIRMED } from './statements.ts'

/** The reasons that Redrive writes. A dead letter with another reason was written by a broker or another library. */
const REASONS: Readonly<Record<DeadLetter['reason'] | Quarantine['reason'], true>> = {
  terminal: true,
  attempts_exhausted: true,
  unproven: true,
  too_old: true,
  over_budget: true,
  breaker_open: true,
  too_large: true,
  same_failure_repeated: true,
  crash_loop: true,
}

interface ProofDeps {
  /** Name of the source. */
  readonly name: string
  readonly candidates: readonly Candidate[]
  readonly request: ReplayRequest
  /** The proof of this source in the options of the catalog. */
  readonly configured: Proof | undefined
}

interface ChosenProof {
  readonly proof: Proof
  readonly proofReason: ProofReason
}

/**
 * Chooses what shows the outcomes of a run. Consumers with Redrive confirm replays; other consumers never do. A wait
 * for their confirmations would look like a run that hangs.
 */
export async function proofOf(run: RunSql, deps: ProofDeps): Promise<ChosenProof> {
  const { name, candidates, request, configured } = deps
  if (request.proof !== undefined) return { proof: request.proof, proofReason: 'requested' }
  if (configured !== undefined) return { proof: configured, proofReason: 'configured' }
  const [row] = await run<{ has_confirmed: boolean }>(HAS_CONFIRMED, [name])
  if (row?.has_confirmed === true) {
    return { proof: 'confirmations', proofReason: 'confirmed_before' }
  }
  return candidates.some(({ reason }) => reason in REASONS)
    ? { proof: 'confirmations', proofReason: 'redrive_dead_letters' }
    : { proof: 'returns', proofReason: 'foreign_dead_letters' }
}
