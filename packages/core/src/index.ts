export {
  type Backoff,
  type BackoffOptions,
  type DecorrelatedOptions,
  decorrelated,
  type ExponentialOptions,
  exponential,
  type FixedOptions,
  fixed,
  type Jitter,
  type LinearOptions,
  linear,
  type ProgressiveOptions,
  progressive,
  type Random,
} from './backoff.ts'
export type { BreakerPhase, BreakerPolicy, BreakerState } from './breaker.ts'
export type { BudgetPolicy, BudgetState } from './budget.ts'
export { type ClassifyOptions, classify } from './classify/classify.ts'
export { cycleFromReport, type ReportedFailure } from './reported-failure.ts'
export {
  business,
  type ErrorClass,
  type ErrorPattern,
  type ErrorPredicate,
  integration,
  type Match,
  type Matches,
  type Rule,
  schema,
  transient,
} from './classify/rules.ts'
export { type DecideInput, type DecideResult, decide, type Outcome } from './decide.ts'
export {
  type DeadLetter,
  type Decision,
  type Drop,
  type Pause,
  type Quarantine,
  type RetryAt,
  SETTLE,
  type Settle,
} from './decision.ts'
export {
  type Delivery,
  FIRST_CYCLE,
  nextCycle,
  type FailureCycle,
  type FailureRecord,
  type UnprovenRuns,
} from './delivery.ts'
export { type Duration, formatDuration, parseDuration } from './duration.ts'
export {
  isRedriveError,
  RedriveError,
  type RedriveErrorCode,
  type RedriveErrorFacts,
} from './errors.ts'
export type { CoreEvent } from './events.ts'
export { FAILURE_CLASSES, type Failure, type FailureClass } from './failure.ts'
export type { DeadLetterCandidate, DeadLetterFilter, Matcher } from './filter.ts'
export type { FloodBucket, FloodPolicy, FloodState } from './flood.ts'
export { type Guards, type SuccessBatch, startGuards } from './guards.ts'
export {
  type DecodedHeaders,
  decodeHeaders,
  type EncodedHeaders,
  encodeHeaders,
  HEADER_BUDGET_BYTES,
  HEADER_PREFIX,
  headerText,
  type WireState,
} from './headers.ts'
export type { LimitPolicy, LimitState } from './limit.ts'
export type { OutageHalf, OutagePolicy, OutageState } from './outage.ts'
export type { PoisonPolicy } from './poison.ts'
export type {
  BreakerOptions,
  BudgetOptions,
  ClassOptions,
  DeadLetterOptions,
  FloodOptions,
  LimitOptions,
  OutageOptions,
  PoisonOptions,
  PolicyOptions,
  RetryOptions,
  UnprovenOptions,
} from './policy/options.ts'
export {
  fillConfig,
  type PolicySource,
  readPolicyOptions,
  resolvePolicy,
} from './policy/resolve.ts'
export type { ClassPolicy, Policy, PolicyRole, RetryPolicy, UnprovenPolicy } from './policy.ts'
export { type SeededRandom, seededRandom } from './seeded-random.ts'
