import { describeError } from './log/text.ts'

/**
 * Calls a function of the user whose failure must not end the process: the process warns instead. The
 * function may also return a promise that rejects.
 */
export function warnOnFailure(name: string, call: () => unknown): void {
  const warn = (error: unknown) =>
    process.emitWarning(error instanceof Error ? error : describeError(error), name)
  try {
    const result = call()
    if (result instanceof Promise) result.catch(warn)
  } catch (error) {
    warn(error)
  }
}
