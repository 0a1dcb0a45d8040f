import type { PatchOperation } from '@redrive/catalog'

/** The masked JSON Pointers of each source, by source name. */
export type Masks = Readonly<Record<string, readonly string[]>>

type Steps = readonly string[]

const stepsOf = (pointer: string): Steps =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

const isIndex = (step: string | undefined) => step !== undefined && /^\d+$/.test(step)

/** Whether a pointer reaches this step of a mask. `*` matches every step. */
const isSame = (mask: string | undefined, step: string | undefined) =>
  mask === undefined || step === undefined || mask === '*' || mask === step

/** Whether one of the two contains the other: their common steps are the same. */
const overlaps = (mask: Steps, path: Steps) =>
  mask.slice(0, path.length).every((step, at) => isSame(step, path[at]))

/**
 * Whether an item is inserted into a list or removed from it, and a mask names another item of that list by its
 * position. The masked item would have another position then.
 */
function shifts(mask: Steps, path: Steps): boolean {
  const parent = path.slice(0, -1)
  return isIndex(path.at(-1)) && isIndex(mask[parent.length]) && overlaps(mask, parent)
}

/**
 * Whether an operation could show a masked value to somebody who may not see it: it moves or copies the value to a
 * place without a mask, or moves it by a change of its list. A `test` needs the permission in every source.
 */
function canReveal(one: PatchOperation, mask: Steps): boolean {
  const path = stepsOf(one.path)
  switch (one.op) {
    case 'copy':
      return overlaps(mask, stepsOf(one.from)) || shifts(mask, path)
    case 'move':
      return (
        overlaps(mask, stepsOf(one.from)) || shifts(mask, stepsOf(one.from)) || shifts(mask, path)
      )
    case 'add':
    case 'remove':
      return shifts(mask, path)
    case 'replace':
    case 'test':
      return false
  }
}

/** Whether a patch could show values that these pointers mask. */
export const canRevealMasked = (
  patch: readonly PatchOperation[],
  masks: readonly string[],
): boolean => masks.map(stepsOf).some((mask) => patch.some((one) => canReveal(one, mask)))
