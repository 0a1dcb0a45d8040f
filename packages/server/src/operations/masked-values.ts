import { type PatchOperation, type ResolvedMask, stepsLeft } from '@redrive/catalog'
import type { Reading } from '../reading/reading.ts'

type Steps = readonly string[]

const stepsOf = (pointer: string): Steps =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

const isIndex = (step: string | undefined) => step !== undefined && /^\d+$/.test(step)

/** Whether one of the two contains the other. */
const overlaps = ({ steps }: ResolvedMask, path: Steps) => stepsLeft(steps, path) !== undefined

/**
 * Whether an item is inserted into a list or removed from it, and a mask names another item of that list by its
 * position. The masked item would have another position then.
 */
function shifts({ steps }: ResolvedMask, path: Steps): boolean {
  const left = stepsLeft(steps, path.slice(0, -1))
  return isIndex(path.at(-1)) && left !== undefined && isIndex(steps.at(-left))
}

/** Whether a value at this path can make a mask match that found nothing before. The body was hidden until then. */
const canMatch = (mask: ResolvedMask, path: Steps) => !mask.isOptional && overlaps(mask, path)

/**
 * Whether an operation could show a masked value, or a hidden body, to a user who may not see it: it moves or copies
 * the value to a place without a mask, moves it by a change of its list, or lets a mask match. A `test` needs the
 * permission in every source.
 */
function canReveal(one: PatchOperation, mask: ResolvedMask): boolean {
  const path = stepsOf(one.path)
  switch (one.op) {
    case 'copy':
      return overlaps(mask, stepsOf(one.from)) || shifts(mask, path) || canMatch(mask, path)
    case 'move':
      return (
        overlaps(mask, stepsOf(one.from)) ||
        shifts(mask, stepsOf(one.from)) ||
        shifts(mask, path) ||
        canMatch(mask, path)
      )
    case 'add':
      return shifts(mask, path) || canMatch(mask, path)
    case 'remove':
      return shifts(mask, path)
    case 'replace':
      // The value exists, so a mask of exactly this path has matched before.
      return canMatch(mask, path) && stepsLeft(mask.steps, path) !== 0
    case 'test':
      return false
  }
}

/** Whether a patch could show values that these masks hide. */
export const canRevealMasked = (
  patch: readonly PatchOperation[],
  masks: readonly ResolvedMask[],
): boolean => masks.some((mask) => patch.some((one) => canReveal(one, mask)))

/** A filter by values of messages. */
export interface ValueFilter {
  readonly json?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, unknown>>
}

/** Whether a filter compares values that are hidden in this source. Its result would show whether they match. */
export function comparesHidden(
  reading: Reading,
  source: string,
  { json = {}, headers = {} }: ValueFilter,
): boolean {
  const masks = reading.masks(source)
  return (
    Object.entries(headers).some(([name, value]) => reading.hidesHeader(source, name, value)) ||
    Object.keys(json).some((pointer) => masks.some((mask) => overlaps(mask, stepsOf(pointer))))
  )
}
