export { type Admission, type AdmitInput, admit, isPlain } from './admit.ts'
export {
  type Backoff,
  type BackoffOptions,
  type DecorrelatedOptions,
  decorrelated,
  delayAfter,
  type ExponentialOptions,
  exponential,
  type FixedOptions,
  fixed,
  type Jitter,
  type LinearOptions,
  linear,
  longestDelayMs,
  type ProgressiveOptions,
  progressive,
  type Random,
} from './backoff.ts'
export {
  type BreakerInput,
  type BreakerPhase,
  type BreakerPolicy,
  type BreakerState,
  breakerPhase,
  CLOSED,
  ISOLATED,
  nextBreaker,
} from './breaker.ts'
export {
  type BudgetAnswer,
  type BudgetPolicy,
  type BudgetState,
  depositSuccesses,
  startBudget,
  takeRetry,
} from './budget.ts'
export { type ClassifyOptions, classify, type Diagnosis, diagnose } from './classify/classify.ts'
export { cycleOfTold, type ToldFailure } from './foreign.ts'
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
export {
  type DecideInput,
  type DecideResult,
  decide,
  giveUpUnrun,
  type Outcome,
} from './decide.ts'
export {
  ALREADY_HANDLED,
  type DeadLetter,
  type Decision,
  type Drop,
  type Pause,
  type Quarantine,
  type RetryAt,
  SETTLE,
  type Settle,
} from './decision.ts'
export { LATE_SHARE } from './defaults.ts'
export { type AttemptRecord, type Delivery, FIRST_CYCLE, type FailureCycle } from './delivery.ts'
export { type Duration, formatDuration, parseDuration } from './duration.ts'
export {
  isRedriveError,
  RedriveError,
  type RedriveErrorCode,
  type RedriveErrorFacts,
} from './errors.ts'
export { type CoreEvent, NO_EVENTS } from './events.ts'
export { FAILURE_CLASSES, type Failure, type FailureClass } from './failure.ts'
export {
  type DeadLetterCandidate,
  type DeadLetterFilter,
  isAlwaysKept,
  isKept,
  KEEP_ALL,
  type Matcher,
} from './filter.ts'
export {
  type FloodAnswer,
  type FloodBucket,
  type FloodPolicy,
  type FloodState,
  takeDeadLetter,
} from './flood.ts'
export {
  attemptsAllowed,
  type Guards,
  type Handled,
  isDependencyToBlame,
  type Learned,
  learnFailure,
  learnHandled,
  pausedUntil,
  startGuards,
} from './guards.ts'
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
export {
  growLimit,
  type LimitPolicy,
  type LimitState,
  restartLimit,
  shrinkLimit,
  startLimit,
} from './limit.ts'
export {
  hasServedOthers,
  isSick,
  NO_OUTAGE,
  type OutageHalf,
  type OutagePolicy,
  type OutageState,
  outageHandled,
  outageUnexplained,
  outageUnreachable,
} from './outage.ts'
export { type CrashVerdict, isPoison, judgeCrashes, type PoisonPolicy } from './poison.ts'
export { type RateAnswer, type RatePolicy, type RateState, startRate, takeOne } from './rate.ts'
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
} from './policy/options.ts'
export {
  fillConfig,
  type PolicySource,
  readPolicy,
  readPolicyOptions,
  resolvePolicy,
} from './policy/resolve.ts'
export type { ClassPolicy, Policy, PolicyRole, RetryPolicy } from './policy.ts'
export { type SeededRandom, seededRandom } from './seeded-random.ts'
export {
  type SignatureInput,
  type SignatureParts,
  signatureOf,
  signatureParts,
} from './signature.ts'
