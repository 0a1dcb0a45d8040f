/** Runs `work` for all items concurrently. An error does not stop the others; it is thrown after all have ended. */
export async function runAll<T, R>(
  all: Iterable<T>,
  work: (one: T) => Promise<R>,
): Promise<readonly R[]> {
  const outcomes = await Promise.allSettled(Array.from(all, work))
  const errors: unknown[] = []
  const results: R[] = []
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') results.push(outcome.value)
    else errors.push(outcome.reason)
  }
  throwAny(errors)
  return results
}

/** Runs `work` for all items, one after the other. An error does not stop the items after it. */
export async function runInSequence<T>(
  all: Iterable<T>,
  work: (one: T) => Promise<unknown>,
): Promise<void> {
  const errors: unknown[] = []
  for (const one of all) await work(one).catch((error: unknown) => void errors.push(error))
  throwAny(errors)
}

function throwAny(errors: readonly unknown[]): void {
  if (errors.length > 1)
    throw new AggregateError(
      errors,
      `${errors.length} tasks failed. Their errors are in the property "errors".`,
    )
  if (errors.length === 1) throw errors[0]
}
