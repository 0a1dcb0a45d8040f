import { scanned } from '../json-scan.ts'
import { maskBody } from '../masking/mask-body.ts'
import type { ResolvedMask } from '../masking/mask.ts'
import { NAME_MAX, storable } from '../text.ts'

/** 64 KiB: users do not read more of a body, and this bounds the time to parse it. */
const BYTES_MAX = 65_536
/** 8 KiB for one text: users do not read longer ones. */
const TEXT_MAX = 8_192

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses a body as JSON. Returns undefined if it is not JSON, too large or nested too deeply. */
export function parsedBody(bytes: Uint8Array): ParsedBody | undefined {
  if (bytes.length === 0 || bytes.length > BYTES_MAX) return undefined
  const { isDeep, isPlain } = scanned(bytes)
  if (isDeep) return undefined
  try {
    const text = utf8.decode(bytes)
    return { text, value: JSON.parse(text) as unknown, isPlain }
  } catch {
    // A body that is not JSON is valid. It only has no preview.
    return undefined
  }
}

export interface ParsedBody {
  readonly text: string
  /** Whether the database parses the text in the same way as JavaScript. */
  readonly isPlain: boolean
  readonly value: unknown
}

/**
 * Returns the preview for display and filters, as text for a jsonb column. If a mask finds nothing, the values of the
 * body are not stored, because filters could find them.
 */
export function previewOf(
  { text, value, isPlain }: ParsedBody,
  masks: readonly ResolvedMask[],
): string {
  // Most bodies need no change, so their text is used as it is.
  const isUnchanged = isPlain && masks.length === 0 && text.length <= TEXT_MAX
  if (isUnchanged) return text
  const masked = maskBody(value, masks)
  return JSON.stringify(
    masked.unmatched === undefined ? cleaned(masked.value) : { [HIDDEN]: masked.unmatched },
  )
}

/** The only key of a preview that is hidden, because the mask in its value found nothing. */
const HIDDEN = 'redrive:hidden-by-mask'

/** A preview as it is stored. */
export interface StoredPreview {
  /** The masked body as JSON; undefined if there is no preview. */
  readonly preview: unknown
  /** The mask that found nothing in the body, so that it has no preview. */
  readonly hiddenBy: string | undefined
}

export function storedPreview(value: unknown): StoredPreview {
  const [entry, ...others] = Object.entries(
    typeof value === 'object' && value !== null ? value : {},
  )
  const isHidden = entry?.[0] === HIDDEN && others.length === 0
  return isHidden
    ? { preview: undefined, hiddenBy: String(entry[1]) }
    : { preview: value ?? undefined, hiddenBy: undefined }
}

/** Returns the values at these paths that can be searched: texts, numbers, true and false. */
export function extractedFrom(
  { value }: ParsedBody,
  paths: ReadonlyMap<string, readonly string[]>,
): readonly (readonly [name: string, value: string])[] {
  const found: (readonly [string, string])[] = []
  for (const [name, steps] of paths) {
    const one = valueAt(value, steps)
    const isSearchable = ['string', 'number', 'boolean'].includes(typeof one)
    if (isSearchable) found.push([name, storable(String(one), NAME_MAX)])
  }
  return found
}

function valueAt(value: unknown, steps: readonly string[]): unknown {
  let current = value
  for (const step of steps) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, step))
      return undefined
    current = (current as Readonly<Record<string, unknown>>)[step]
  }
  return current
}

/** Returns a value that the database can store. */
function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return storable(value, TEXT_MAX)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(cleaned)
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [storable(name, TEXT_MAX), cleaned(one)]),
  )
}
