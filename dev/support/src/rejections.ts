/** Returns the error of a rejected promise. Throws when the promise is fulfilled. */
export async function refusal(work: Promise<unknown>): Promise<Error> {
  try {
    await work
  } catch (error) {
    return error as Error
  }
  throw new Error('Expected a rejection.')
}
