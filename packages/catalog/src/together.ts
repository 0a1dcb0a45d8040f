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
  if (errors.length > 1) throw new AggregateError(errors, 'Several are in trouble.')
  if (errors.length === 1) throw errors[0]
  return answers
}
