import { classify, cycleFromReport } from '@redrive/core'
import type { WrittenCause, WrittenFailure, WrittenFamily } from './family.ts'
import type { GroupedFamily } from './pairs.ts'

/** Groups all failures by the rules of today. With `handler`, all failures come from this handler. */
export function groupFamilies(
  families: readonly WrittenFamily[],
  handler?: string,
): readonly GroupedFamily[] {
  return families.map(({ name, alike, failures }) => ({
    name,
    alike,
    groups: failures.map((failure) => groupOf(failure, handler ?? failure.handler)),
  }))
}

/** Returns the group of a dead letter with this failure. */
function groupOf(failure: WrittenFailure, handler: string): string {
  const { type, message, stack, isReported } = failure
  if (!isReported) {
    const options = { rules: [], handler, includeStack: false, now: 0 }
    return classify(thrownOf(failure), options).signature
  }
  const cycle = cycleFromReport({ type, message, stack, at: undefined, attempts: 1 })
  const record = cycle.history[0]
  if (record === undefined) throw new Error(`A report of "${message}" has no history.`)
  return record.signature
}

/** Returns the error as the handler throws it. */
function thrownOf({ type, code, message, stack, cause, fields }: WrittenFailure): Error {
  const head = `${type}: ${message}`
  const error =
    cause === undefined ? new Error(message) : new Error(message, { cause: causeOf(cause) })
  return Object.assign(error, fields, code === undefined ? {} : { code }, {
    name: type,
    stack: stack === undefined ? head : `${head}\n${stack}`,
  })
}

function causeOf({ type, code, message }: WrittenCause): Error {
  const stack = `${type}: ${message}`
  return Object.assign(new Error(message), code === undefined ? {} : { code }, {
    name: type,
    stack,
  })
}
