import { pointerSteps } from '../json-pointer.ts'

/** A value of bodies that only some people may see. */
export interface Mask {
  /** JSON Pointer (RFC 6901); `*` matches every item or key. */
  readonly pointer: string
  /**
   * Whether a body without the value is shown. Otherwise it is hidden, because the value may be at another place.
   * Default: false.
   */
  readonly optional?: boolean | undefined
}

export interface ResolvedMask {
  readonly pointer: string
  readonly steps: readonly string[]
  readonly isOptional: boolean
}

/** Returns the mask with its steps, or undefined if its text is not a JSON Pointer. */
export function resolveMask(mask: string | Mask): ResolvedMask | undefined {
  const { pointer, optional = false } = typeof mask === 'string' ? { pointer: mask } : mask
  const steps = pointerSteps(pointer)
  return steps === undefined ? undefined : { pointer, steps, isOptional: optional }
}

/** Whether a step of a mask matches a name in a body: in upper or lower case, because producers differ in this. */
export const isStep = (step: string | undefined, name: string): boolean =>
  step === '*' || step?.toLowerCase() === name.toLowerCase()

export const isIndex = (step: string | undefined): boolean =>
  step !== undefined && /^\d+$/.test(step)

/**
 * Returns how many steps of a mask are left at the end of a path in a body, or undefined if the path leads elsewhere.
 * It follows the rules of `maskBody`: a mask also matches names in other case, and continues in the items of a list.
 */
export function stepsLeft(mask: readonly string[], path: readonly string[]): number | undefined {
  const [step, ...rest] = mask
  const [name, ...below] = path
  if (step === undefined || name === undefined) return mask.length
  const isEnd = name === '-'
  const isTaken = isStep(step, name) || isEnd || isSamePosition(step, name)
  const taken = isTaken ? stepsLeft(rest, below) : undefined
  const isItem = isEnd || ITEM.test(name)
  return taken ?? (isItem && !isIndex(step) ? stepsLeft(mask, below) : undefined)
}

/** A position in a list. The database also accepts a sign, and counts from the end then. */
const ITEM = /^\s*[+-]?\d+\s*$/

/**
 * Whether both can name the same item of a list. The database reads `00` and `+0` as 0. A position from the end can be
 * any item.
 */
const isSamePosition = (step: string, name: string): boolean =>
  isIndex(step) && ITEM.test(name) && (name.includes('-') || Number(name) === Number(step))
