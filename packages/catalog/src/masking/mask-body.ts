import { isTooDeep } from '../json-scan.ts'
import { isIndex, isStep, type ResolvedMask } from './mask.ts'

/** Replaces a masked value. */
export const MASKED = '***'

export interface MaskedBody {
  readonly value: unknown
  /** The first mask that is not optional and found nothing. The body must be hidden then. */
  readonly unmatched: string | undefined
}

/** A mask on its way through a body: `at` of its steps have matched. */
interface Active {
  readonly mask: ResolvedMask
  readonly at: number
}

/**
 * Replaces the masked values of a body. A mask also matches names in other upper and lower case, the items of a list
 * where it expects an object, and JSON inside a text. `text` changes the other texts.
 */
export function maskBody(
  body: unknown,
  masks: readonly ResolvedMask[],
  text: (value: string) => string = (value) => value,
): MaskedBody {
  const matched = new Set<ResolvedMask>()
  let hiddenCount = 0
  const hide = (active: readonly Active[]) => {
    for (const { mask } of active) matched.add(mask)
    hiddenCount += 1
    return MASKED
  }

  function walk(value: unknown, active: readonly Active[]): unknown {
    const isEnd = active.some(({ mask, at }) => at === mask.steps.length)
    // An earlier mask may have replaced the value already.
    if (value === MASKED && active.length > 0) return hide(active)
    if (isEnd) return hideWhole(value, active)
    if (typeof value === 'string') return active.length === 0 ? text(value) : inText(value, active)
    if (typeof value === 'number') return inNumber(value, text)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((one, at) => walk(one, intoItem(active, at)))
    return withNames(
      Object.entries(value).map(([name, one]) => [text(name), walk(one, intoKey(active, name))]),
    )
  }

  /** Hides a value at which a mask ends. Masks of values below it must still find them there. */
  function hideWhole(value: unknown, active: readonly Active[]): string {
    const isEnd = ({ mask, at }: Active) => at === mask.steps.length
    const below = active.filter((one) => !isEnd(one))
    if (below.length > 0) walk(value, below)
    return hide(active.filter(isEnd))
  }

  function inText(value: string, active: readonly Active[]): string {
    if (!JSON_START.test(value)) return text(value)
    const parsed = isTooDeep(Buffer.from(value)) ? undefined : jsonOf(value)
    // What looks like JSON and cannot be read may contain the value.
    if (parsed === undefined) return hide(active)
    const before = hiddenCount
    const masked = walk(parsed, active)
    return hiddenCount > before ? JSON.stringify(masked) : text(value)
  }

  const value = walk(
    body,
    masks.map((mask) => ({ mask, at: 0 })),
  )
  const unmatched = masks.find((mask) => !mask.isOptional && !matched.has(mask))
  return { value, unmatched: unmatched?.pointer }
}

/** The first character of a JSON object, list or text. */
const JSON_START = /^\s*["[{]/

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // A text that only begins like JSON, or that was cut.
    return undefined
  }
}

/** A list item: a step that is not a position continues in every item. A star may mean the item or a key in it. */
const intoItem = (active: readonly Active[], index: number): readonly Active[] =>
  active.flatMap(({ mask, at }) => {
    const step = mask.steps[at]
    const taken = { mask, at: at + 1 }
    if (step === '*') return [taken, { mask, at }]
    if (step === String(index)) return [taken]
    return isIndex(step) ? [] : [{ mask, at }]
  })

const intoKey = (active: readonly Active[], name: string): readonly Active[] =>
  active.flatMap(({ mask, at }) => (isStep(mask.steps[at], name) ? [{ mask, at: at + 1 }] : []))

function inNumber(value: number, text: (value: string) => string): unknown {
  const digits = String(value)
  const shown = text(digits)
  return shown === digits ? value : shown
}

/** Returns an object with all entries. Names that became equal get a number. */
function withNames(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const found = new Map<string, unknown>()
  const uses = new Map<string, number>()
  for (const [name, value] of entries) {
    const use = (uses.get(name) ?? 0) + 1
    uses.set(name, use)
    found.set(use === 1 && !found.has(name) ? name : `${name} (${use})`, value)
  }
  return Object.fromEntries(found)
}
