// Measures the cost of a resilience wrapper per message inside the process: no broker, no waiting.
//
// To add a candidate: append `counted(name, attemptsPerMessage, run)` to one of the three arrays.
// Write its loop out in its own function: a shared loop would see every candidate's callee and
// lose the inlining that each has when it is alone in a service.
import { classify, decide, fixed, resolvePolicy, startGuards } from '@redrive/core'
import type { BenchCase, Comparison } from '../comparison.ts'
import type { Candidate, MeasureOptions } from '../harness.ts'
import {
  cockatiel,
  type Handler,
  handWritten,
  NEVER_OPENS,
  OPOSSUM_FAILING,
  opossum,
  withoutTimers,
} from '../peers.ts'
import { DELIVERY, redriveLoop } from '../redrive.ts'
import type { Goal, SelfCheckRange } from '../verdict.ts'

const BARE = 'bare await'
const HAND_WRITTEN = 'hand-written retry + breaker'
const COCKATIEL = 'cockatiel wrap(retry, breaker)'
const OPOSSUM = 'opossum fire()'
const REDRIVE_CONSUME = 'redrive consume loop'
const REDRIVE_DECIDE = 'redrive decide'

const BREAKER_THRESHOLD = 5
const MAX_ATTEMPTS = 5

// ---- Handlers ------------------------------------------------------------------------------

/** Counted, because a breaker that opened by mistake would skip the handler and look fast. */
let attempts = 0

const succeeds: Handler = async () => {
  attempts += 1
}

/** One error for all. A stack captured for each message would add the same cost to every candidate. */
const failure = new Error('handler failed')

const throwsOnce: Handler = async () => {
  attempts += 1
  if (attempts % 2 === 1) throw failure
}

const throwsAlways: Handler = async () => {
  attempts += 1
  throw failure
}

function counted(
  name: string,
  attemptsPerMessage: number,
  run: Candidate['run'],
  close: () => void = () => {},
): Candidate {
  return {
    name,
    run,
    close,
    prepare: async () => {
      attempts = 0
    },
    verify: (count) => {
      const expected = count * attemptsPerMessage
      if (attempts !== expected) throw new Error(`${attempts} attempts instead of ${expected}`)
    },
  }
}

// ---- Success: the handler returns, one attempt per message ----------------------------------

async function successCandidates(): Promise<Candidate[]> {
  const loop = await redriveLoop(succeeds)
  const written = handWritten(succeeds, MAX_ATTEMPTS, BREAKER_THRESHOLD)
  const policy = cockatiel(MAX_ATTEMPTS, BREAKER_THRESHOLD)
  const breaker = opossum(succeeds)
  return [
    counted(BARE, 1, async (count) => {
      for (let done = 0; done < count; done += 1) await succeeds()
    }),
    counted(HAND_WRITTEN, 1, async (count) => {
      for (let done = 0; done < count; done += 1) await written()
    }),
    counted(COCKATIEL, 1, async (count) => {
      for (let done = 0; done < count; done += 1) await policy.execute(succeeds)
    }),
    counted(
      OPOSSUM,
      1,
      async (count) => {
        for (let done = 0; done < count; done += 1) await breaker.fire()
      },
      () => breaker.shutdown(),
    ),
    counted(REDRIVE_CONSUME, 1, (count) => loop.run(count)),
  ]
}

// ---- Recover: the handler throws once, then returns; two attempts per message ----------------

async function recoverCandidates(): Promise<Candidate[]> {
  // Unlimited, as for the peers: a budget would hold back the second half of the retries.
  const loop = await redriveLoop(throwsOnce, {
    retry: { backoff: fixed('1ms'), minDelay: '1ms' },
    retryBudget: 'off',
  })
  const written = handWritten(throwsOnce, MAX_ATTEMPTS, BREAKER_THRESHOLD)
  const policy = cockatiel(MAX_ATTEMPTS, BREAKER_THRESHOLD)
  const breaker = opossum(throwsOnce, OPOSSUM_FAILING)
  return [
    counted(HAND_WRITTEN, 2, async (count) => {
      for (let done = 0; done < count; done += 1) await written()
    }),
    counted(COCKATIEL, 2, (count) =>
      withoutTimers(async () => {
        for (let done = 0; done < count; done += 1) await policy.execute(throwsOnce)
      }),
    ),
    // opossum does not retry: the second fire() is the hand-written retry that it needs.
    counted(
      OPOSSUM,
      2,
      async (count) => {
        for (let done = 0; done < count; done += 1) {
          try {
            await breaker.fire()
          } catch {
            await breaker.fire()
          }
        }
      },
      () => breaker.shutdown(),
    ),
    counted(REDRIVE_CONSUME, 2, (count) => loop.run(count)),
  ]
}

// ---- Give up: the handler throws and no attempt is left; one attempt per message -------------

/** Measures the decision about one failure alone: no handler, no loop. */
function decideCandidate(): Candidate {
  const policy = resolvePolicy({ retry: { attempts: 1 }, flood: 'off' })
  const guards = startGuards(policy, 0)
  const known = classify(failure, { rules: [], handler: 'orders', includeStack: false, now: 0 })
  const outcome = { kind: 'failure', failure: known, startedAt: 0, inFlight: 1 } as const
  const { cycle } = DELIVERY
  return {
    name: REDRIVE_DECIDE,
    run: async (count) => {
      for (let done = 0; done < count; done += 1) {
        decide({ policy, delivery: DELIVERY, outcome, cycle, guards, now: done, random: () => 0.5 })
      }
    },
  }
}

async function giveUpCandidates(): Promise<Candidate[]> {
  const loop = await redriveLoop(throwsAlways, { retry: { attempts: 1 }, flood: 'off' })
  const written = handWritten(throwsAlways, 1, NEVER_OPENS)
  const policy = cockatiel(1, NEVER_OPENS)
  const breaker = opossum(throwsAlways, OPOSSUM_FAILING)
  return [
    counted(BARE, 1, async (count) => {
      for (let done = 0; done < count; done += 1) await throwsAlways().catch(ignore)
    }),
    counted(HAND_WRITTEN, 1, async (count) => {
      for (let done = 0; done < count; done += 1) await written().catch(ignore)
    }),
    counted(COCKATIEL, 1, async (count) => {
      for (let done = 0; done < count; done += 1) await policy.execute(throwsAlways).catch(ignore)
    }),
    counted(
      OPOSSUM,
      1,
      async (count) => {
        for (let done = 0; done < count; done += 1) await breaker.fire().catch(ignore)
      },
      () => breaker.shutdown(),
    ),
    counted(REDRIVE_CONSUME, 1, (count) => loop.run(count)),
    decideCandidate(),
  ]
}

function ignore(): void {}

// ---- Goals ---------------------------------------------------------------------------------

// Judged on CPU time. Nothing waits here, so it equals wall time on an idle machine. On a busy
// machine it excludes the time when another process had the core.
const successGoals: Goal[] = [
  {
    name: 'redrive/cockatiel',
    candidate: REDRIVE_CONSUME,
    against: COCKATIEL,
    metric: 'cpuNs',
    atMost: 0.5,
  },
  {
    name: 'redrive/hand-written',
    candidate: REDRIVE_CONSUME,
    against: HAND_WRITTEN,
    metric: 'cpuNs',
    atMost: 1.2,
    aim: true,
  },
]

/** One decision must cost less than cockatiel's complete handling of the same failure. */
const giveUpGoals: Goal[] = [
  {
    name: 'decide/cockatiel',
    candidate: REDRIVE_DECIDE,
    against: COCKATIEL,
    metric: 'cpuNs',
    atMost: 1,
  },
]

const options: MeasureOptions = {
  rounds: 60,
  sampleMs: 50,
  warmupRounds: 5,
  seed: 1,
  maxCount: 5_000_000,
  twinOf: COCKATIEL,
}

const selfCheck: SelfCheckRange = {
  low: 0.95,
  high: 1.05,
  reason: 'the goal is a factor of two, and a deviation of 5 % cannot change the verdict',
}

function comparison(
  name: string,
  summary: string,
  candidates: readonly Candidate[],
  goals: readonly Goal[],
): Comparison {
  return { name, summary, candidates, baseline: COCKATIEL, options, selfCheck, goals }
}

export const bench: BenchCase = {
  summary: 'Cost of a resilience wrapper per message, in process',
  // Success first: a service compiles its success path before it sees failures.
  comparisons: [
    async () =>
      comparison('core.success', 'handler returns', await successCandidates(), successGoals),
    async () =>
      comparison('core.recover', 'throws once, then returns', await recoverCandidates(), []),
    async () =>
      comparison('core.give-up', 'throws, no attempt left', await giveUpCandidates(), giveUpGoals),
  ],
}
