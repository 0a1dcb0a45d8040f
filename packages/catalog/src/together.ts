/** One that is in trouble does not keep the others from their work; what is wrong is told when all are done. */
export async function together<T, R>(
  all: Iterable<T>,
  work: (one: T) => Promise<R>,
): Promise<readonly R[]> {
  const results = await Promise.allSettled(Array.from(all, work))
  const errors: unknown[] = []
  const answers: R[] = []
  for (const result of results) {
    if (result.status === 'fulfilled') answers.push(result.value)
    else errors.push(result.reason)
  }
  tell(errors)
  return answers
}

/** The same one after the other. */
export async function inTurn<T>(
  all: Iterable<T>,
  work: (one: T) => Promise<unknown>,
): Promise<void> {
  const errors: unknown[] = []
  for (const one of all) await work(one).catch((error: unknown) => void errors.push(error))
  tell(errors)
}

function tell(errors: readonly unknown[]): void {
  if (errors.length > 1) throw new AggregateError(errors, 'Several are in trouble.')
  if (errors.length === 1) throw errors[0]
}
