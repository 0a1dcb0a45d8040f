import type { Policy } from '@redrive/core'
import { BREAKER_OPEN_JITTER, unprovenDelay } from '@redrive/core/internal'

/** What the bounds of a cell depend on. */
export interface BoundInput {
  readonly policy: Policy
  /** Processes that share nothing. Each has at least one attempt in flight while messages wait. */
  readonly processes: number
  readonly arrivalsPerSecond: number
  readonly capacityPerSecond: number
  readonly outageMs: number
}

/**
 * Returns the failed runs that the fleet needs to notice the outage and its end. Each process needs the messages
 * that open its breaker, then one for each probe. Messages that wait for enough others are repeated.
 */
export const neededFailures = (input: BoundInput): number => {
  const { policy, processes, outageMs, arrivalsPerSecond } = input
  const perProcess = tripOf(policy) + probesOf(policy, outageMs)
  return processes * perProcess + repeatsOf(policy, arrivalsPerSecond)
}

/** Returns how many different messages must fail until the breaker opens. */
function tripOf({ breaker }: Policy): number {
  if (breaker === undefined) return Number.POSITIVE_INFINITY
  const { trip } = breaker
  return trip.kind === 'consecutive' ? trip.failures : trip.minimum
}

/** Returns the most probes that one process sends in the outage. Each wait is the shortest that the jitter allows. */
export function probesOf({ breaker }: Policy, outageMs: number): number {
  if (breaker === undefined) return 0
  const { minOpenMs, maxOpenMs, openShare } = breaker
  let probes = 0
  let at = 0
  for (;;) {
    const openMs = Math.min(maxOpenMs, Math.max(minOpenMs, at * openShare))
    at += openMs * (1 - BREAKER_OPEN_JITTER)
    if (at >= outageMs) return probes
    probes += 1
  }
}

/**
 * Returns the repeated runs before enough different messages have arrived to open a breaker. The first message waits
 * for all of the others, the last for none. A message without proof is repeated with the shortest delays.
 */
export function repeatsOf(policy: Policy, arrivalsPerSecond: number): number {
  let repeats = 0
  for (let others = 1; others < tripOf(policy); others++) {
    repeats += repeatsWithin(policy, (others / arrivalsPerSecond) * 1_000)
  }
  return repeats
}

function repeatsWithin({ retry }: Policy, waitMs: number): number {
  let at = retry.minDelayMs
  let runs = 0
  while (at <= waitMs) {
    runs += 1
    const unproven = { runs, waitedMs: at }
    at += Math.max(
      retry.minDelayMs,
      unprovenDelay(retry.unproven, { unproven }, () => 0),
    )
  }
  return runs
}

/**
 * Returns why no limit of at least one attempt for each process can keep the calls within the timeout, or
 * undefined when it can.
 */
export function impossibility(input: BoundInput): string | undefined {
  const { processes, arrivalsPerSecond, capacityPerSecond, policy } = input
  const timeoutS = policy.timeoutMs / 1_000
  // One attempt in flight in the whole fleet never waits for another one.
  if (processes === 1) return undefined
  if (calmLoad(arrivalsPerSecond, capacityPerSecond, timeoutS) >= capacityPerSecond) {
    const late = lateShare(arrivalsPerSecond, capacityPerSecond, timeoutS)
    return `unstable without an outage: ${percent(late)} of the calls wait longer than the timeout, and their retries exceed the capacity`
  }
  const waitS = processes / capacityPerSecond
  if (waitS > timeoutS) {
    return `${processes} processes with one attempt each: ${processes} / ${capacityPerSecond} = ${waitS.toFixed(2)} s for each call, timeout ${timeoutS} s`
  }
  return undefined
}

/**
 * Returns the largest share of good messages that may be given up in an overload that does not end. Up to
 * `outage.ratio` of the runs may fail before failures stop to count, and a message needs all of its attempts to fail.
 */
export function falseShare({ outage, retry }: Policy): number {
  return (outage?.ratio ?? 1) ** retry.classes.transient.attempts
}

/**
 * Returns the calls per second before the outage, when each late call is repeated: the fixed point of
 * `load = arrivals / (1 - late share at this load)`. Returns the capacity when there is none below it.
 */
export function calmLoad(
  arrivalsPerSecond: number,
  capacityPerSecond: number,
  timeoutS: number,
): number {
  let load = arrivalsPerSecond
  for (let round = 0; round < ROUNDS; round++) {
    const next = arrivalsPerSecond / (1 - lateShare(load, capacityPerSecond, timeoutS))
    if (next >= capacityPerSecond) return capacityPerSecond
    if (next - load < load * CLOSE) return next
    load = next
  }
  return load
}

/** The load only grows from round to round, and it is at its fixed point long before this. */
const ROUNDS = 1_000
const CLOSE = 1e-6

/**
 * Returns the share of calls that take longer than the timeout, for random arrivals at a server that needs the
 * same time for each call (M/D/1). The wait W has P(W ≤ t) = (1-ρ) Σ (ρ(j-u))^j / j! · e^(ρ(u-j)), for j from 0 to
 * u = t / service time.
 */
export function lateShare(
  arrivalsPerSecond: number,
  capacityPerSecond: number,
  timeoutS: number,
): number {
  const load = arrivalsPerSecond / capacityPerSecond
  const services = timeoutS * capacityPerSecond - 1
  if (services < 0) return 1
  // Fewer than one call in a million waits this long at two thirds of the capacity.
  if (services > LONGEST) return 0
  let sum = 0
  let factorial = 1
  for (let j = 0; j <= services; j++) {
    if (j > 0) factorial *= j
    sum += ((load * (j - services)) ** j / factorial) * Math.exp(load * (services - j))
  }
  return Math.min(1, Math.max(0, 1 - (1 - load) * sum))
}

const LONGEST = 20

const percent = (share: number) => `${Math.round(share * 100)} %`
