import { diagnose } from './classify/classify.ts'
import { type AttemptRecord, type FailureCycle, FIRST_CYCLE } from './delivery.ts'

/** What headers of someone else say about how a message failed. */
export interface ToldFailure {
  readonly type: string | undefined
  readonly message: string | undefined
  readonly stack: string | undefined
  readonly at: number | undefined
  readonly attempts: number
}

/** A cycle with one record of history, classed and signed by the same rules as our own failures. */
export function cycleOfTold(told: ToldFailure): FailureCycle {
  const { type = 'Error', message = 'no message', stack, at, attempts } = told
  const error = Object.assign(new Error(message), { name: type, stack: stack ?? '' })
  const { failure } = diagnose(error, {
    rules: [],
    handler: 'foreign',
    includeStack: false,
    now: at ?? 0,
  })
  const record: AttemptRecord = {
    number: Math.max(1, attempts),
    at: at ?? 0,
    class: failure.class,
    signature: failure.signature,
    code: failure.code,
    message: failure.message,
  }
  return { ...FIRST_CYCLE, attempts, firstFailedAt: at, history: [record] }
}
