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
  const hide = (active: readonly Active[]) => {
    for (const { mask } of active) matched.add(mask)
    return MASKED
  }

  function walk(value: unknown, active: readonly Active[]): unknown {
    const isEnd = active.some(({ mask, at }) => at === mask.steps.length)
    // An earlier mask may have replaced the value already.
    if (isEnd || (value === MASKED && active.length > 0)) return hide(active)
    if (typeof value === 'string') return active.length === 0 ? text(value) : inText(value, active)
    if (typeof value === 'number') return inNumber(value, text)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((one, at) => walk(one, intoItem(active, at)))
    return withNames(
      Object.entries(value).map(([name, one]) => [text(name), walk(one, intoKey(active, name))]),
    )
  }

  function inText(value: string, active: readonly Active[]): string {
    if (!JSON_START.test(value)) return text(value)
    if (isTooDeep(Buffer.from(value))) return hide(active)
    const parsed = jsonOf(value)
    const before = matched.size
    const masked = walk(parsed, active)
    return matched.size > before ? JSON.stringify(masked) : text(value)
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
    // Most texts that begin like JSON are not JSON. They have no values to mask.
    return undefined
  }
}

/** A list item: a step that is not a position continues in every item. */
const intoItem = (active: readonly Active[], index: number): readonly Active[] =>
  active.flatMap(({ mask, at }) => {
    const step = mask.steps[at]
    if (step === '*' || step === String(index)) return [{ mask, at: at + 1 }]
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
  for (const [name, value] of entries) {
    let unique = name
    for (let n = 2; found.has(unique); n++) unique = `${name} (${n})`
    found.set(unique, value)
  }
  return Object.fromEntries(found)
}
