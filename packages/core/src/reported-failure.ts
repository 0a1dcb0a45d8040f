import { diagnose } from './classify/classify.ts'
import { type FailureCycle, type FailureRecord, FIRST_CYCLE } from './delivery.ts'

/** A failure as described by headers of another library. */
export interface ReportedFailure {
  readonly type: string | undefined
  readonly message: string | undefined
  readonly stack: string | undefined
  readonly at: number | undefined
  readonly attempts: number
}

/** Returns a cycle with one record of history, classified and signed by the rules of Redrive's own failures. */
export function cycleFromReport(report: ReportedFailure): FailureCycle {
  const { at, attempts } = report
  const { failure } = diagnose(errorOf(report), {
    rules: [],
    handler: 'foreign',
    includeStack: false,
    // Only a header with a date needs the time.
    now: 0,
  })
  const record: FailureRecord = {
    number: Math.max(1, attempts),
    at: at ?? 0,
    waitedMs: 0,
    class: failure.class,
    signature: failure.signature,
    code: failure.code,
    type: failure.type,
    message: failure.message,
    counted: true,
  }
  return { ...FIRST_CYCLE, attempts, runs: attempts, firstFailedAt: at, history: [record] }
}

/** Rebuilds the error with its last cause and the frames of that cause. */
function errorOf({ type = 'Error', message = 'no message', stack = '' }: ReportedFailure): Error {
  const root = rootOf(stack)
  if (root === undefined) return named(new Error(message), type, innermost(stack, message))
  const cause = named(new Error(root.message), root.type, '')
  return named(new Error(message, { cause }), type, root.stack)
}

/** Adds a head to the stack: MassTransit reports only frames, and the first frame is not a head. */
function named(error: Error, name: string, stack: string): Error {
  return Object.assign(error, { name, stack: `${name}\n${stack}` })
}

/** The frames that are read of a stack of Python. */
const PYTHON_FRAMES = 12

/**
 * Returns the message and the last frames of a stack of Python, which prints the innermost call last. Returns other
 * stacks as they are.
 */
function innermost(stack: string, message: string): string {
  const frames = stack.split('\n').filter((line) => /^\s*File "/.test(line))
  if (frames.length === 0) return stack
  return [message, ...frames.slice(-PYTHON_FRAMES)].join('\n')
}

/** The text that Java writes before each cause, from the outermost to the root cause. */
const CAUSED_BY = '\nCaused by: '

/** Returns the root cause. Frameworks wrap it: their exception names the listener, the last cause explains the failure. */
function rootOf(stack: string): { type: string; message: string; stack: string } | undefined {
  const at = stack.lastIndexOf(CAUSED_BY)
  if (at === -1) return undefined
  const text = stack.slice(at + CAUSED_BY.length)
  // Spaces and tabs, no line ends: with these, a text of only line ends would be searched again from each of them.
  const frames = text.search(/\n[ \t]+at /)
  const head = frames === -1 ? text : text.slice(0, frames).trimEnd()
  const type = /^[\w$.]+/.exec(head)?.[0] ?? ''
  return { type, message: head.slice(type.length).replace(/^: /, ''), stack: text }
}
