/** For packages of this repository; it can change in any version. */
export { type Admission, type AdmitInput, admit, isPlain } from './admit.ts'
export { longestDelayMs } from './backoff.ts'
export { breakerPhase, CLOSED, ISOLATED } from './breaker.ts'
export { type BudgetResult, takeRetry } from './budget.ts'
export { type Diagnosis, diagnose } from './classify/classify.ts'
export { deadLetterWithoutAttempt, waitForEarlierRun } from './decide.ts'
export { ALREADY_HANDLED } from './decision.ts'
export { BREAKER_OPEN_JITTER, LATE_SHARE, LONG_RUN_MS } from './defaults.ts'
export { reportOfErrorHeaders } from './error-headers.ts'
export { isAlwaysKept, isKept } from './filter.ts'
export {
  attemptsAllowed,
  type GuardUpdate,
  recordFailure,
  recordSuccesses,
  pausedUntil,
} from './guards.ts'
export { hiding } from './hiding.ts'
export { normaliseMessage } from './normalise.ts'
export { NO_OUTAGE } from './outage.ts'
export { readFilter, readPolicy } from './policy/resolve.ts'
export {
  type Check,
  FUNCTION,
  named,
  readOptions,
  readSection,
  type Section,
  withMethods,
} from './policy/section.ts'
export { OWN_SIGNATURE } from './own-signature.ts'
export { type RateResult, type RatePolicy, type RateState, startRate, takeOne } from './rate.ts'
export { unprovenDelay } from './schedule-retry.ts'
export { type SignatureInput, type SignatureFields, signatureParts } from './signature.ts'
export { isRecord, shown } from './text.ts'
export { parseTraceparent, type TraceParent } from './traceparent.ts'
