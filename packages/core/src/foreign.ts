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
  const { at, attempts } = told
  const { failure } = diagnose(errorOf(told), {
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

/** The error as it was, with the last of its causes and the frames of that. */
function errorOf({ type = 'Error', message = 'no message', stack = '' }: ToldFailure): Error {
  const root = rootOf(stack)
  if (root === undefined) return named(new Error(message), type, stack)
  const cause = named(new Error(root.message), root.type, '')
  return named(new Error(message, { cause }), type, root.stack)
}

/** The head is ours: MassTransit tells frames alone, and the first of them is not a head. */
function named(error: Error, name: string, stack: string): Error {
  return Object.assign(error, { name, stack: `${name}\n${stack}` })
}

/** What Java writes before each cause, from the outermost to the one that matters. */
const CAUSED_BY = '\nCaused by: '

/** Frameworks wrap: their own exception says which listener failed, its last cause says why. */
function rootOf(stack: string): { type: string; message: string; stack: string } | undefined {
  const at = stack.lastIndexOf(CAUSED_BY)
  if (at === -1) return undefined
  const text = stack.slice(at + CAUSED_BY.length)
  const frames = text.search(/\n\s+at /)
  const head = frames === -1 ? text : text.slice(0, frames)
  const type = /^[\w$.]+/.exec(head)?.[0] ?? ''
  return { type, message: head.slice(type.length).replace(/^: /, ''), stack: text }
}
