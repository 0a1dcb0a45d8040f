import { countOf, describeError, warningOf } from './log/text.ts'

/**
 * Returns the number of warnings omitted before this one; undefined when this one is omitted as well. It is called only when
 * the function fails.
 */
type TakeWarning = () => number | undefined

/**
 * Calls a function of the user whose failure must not end the process: the process warns instead. The
 * function may also return a promise that rejects.
 */
export function warnOnFailure(
  name: string,
  call: () => unknown,
  takeWarning: TakeWarning = () => 0,
): void {
  const warn = (error: unknown) => {
    const omitted = takeWarning()
    if (omitted === undefined) return
    if (omitted > 0) {
      const rest = `${countOf(omitted, 'similar warning')} omitted`
      process.emitWarning(`${describeError(error)} (${rest})`, name)
    } else process.emitWarning(warningOf(error), name)
  }
  try {
    const result = call()
    if (result instanceof Promise) result.catch(warn)
  } catch (error) {
    warn(error)
  }
}
