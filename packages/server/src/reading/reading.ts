import {
  type Mask,
  maskBody,
  MASKED,
  resolveMask,
  type ResolvedMask,
  type StoredPreview,
} from '@redrive/catalog'
import { DETECTORS, type Detector } from '@redrive/api/enums'
import { hiding } from '@redrive/core/internal'

/** The parts of the messages of a source that are hidden from users. */
export interface SourceMasks {
  readonly mask?: readonly (string | Mask)[] | undefined
  readonly maskHeaders?: readonly string[] | undefined
}

export interface ReadingOptions {
  /** Masks by name of the source. Default: none. */
  readonly sources?: Readonly<Record<string, SourceMasks>>
  /** Default: all. */
  readonly detectors?: readonly Detector[]
}

/**
 * Decides what people may read of messages. It uses the masks of the current config, so a new mask also applies to
 * stored messages.
 */
export interface Reading {
  /** Returns an error message, key or other text of a message without the values that detectors find. */
  text(value: string): string
  headers(
    source: string,
    headers: Readonly<Record<string, unknown>>,
  ): Readonly<Record<string, unknown>>
  body(source: string, body: StoredPreview): BodyView
  /** Whether the header is hidden, or a part of its value. Default of `value`: no part. */
  hidesHeader(source: string, name: string, value?: unknown): boolean
  masks(source: string): readonly ResolvedMask[]
  /** Names of the headers that the config masks, in lower case. */
  maskedHeaders(source: string): readonly string[]
  /** The sources with masks. */
  readonly sources: readonly string[]
  /** The detectors that are in use. */
  readonly detectors: readonly Detector[]
}

export interface BodyView {
  readonly preview?: unknown
  /** The mask that found nothing. The body is hidden then. */
  readonly hiddenBy?: string
}

export function createReading({
  sources = {},
  detectors = DETECTORS,
}: ReadingOptions = {}): Reading {
  const text = hiding(detectors)
  const known = new Map(Object.entries(sources).map(([name, one]) => [name, resolved(one)]))
  const of = (source: string) => known.get(source) ?? NO_MASKS
  const hidesHeader = (source: string, name: string) =>
    isSecretHeader(name) || of(source).headers.has(name.toLowerCase())
  return {
    text,
    hidesHeader: (source, name, value) =>
      hidesHeader(source, name) ||
      (typeof value === 'string' &&
        hiddenInTable(value, (inner) => hidesHeader(source, inner)) !== value),
    sources: [...known.keys()],
    detectors,
    masks: (source) => of(source).masks,
    maskedHeaders: (source) => [...of(source).headers],
    headers(source, headers) {
      const hides = (name: string) => hidesHeader(source, name)
      const entries = Object.entries(headers).map(([name, value]) => [
        name,
        hides(name)
          ? MASKED
          : typeof value === 'string'
            ? text(hiddenInTable(value, hides))
            : value,
      ])
      return Object.fromEntries(entries) as Record<string, unknown>
    },
    body(source, { preview, hiddenBy }) {
      if (hiddenBy !== undefined) return { hiddenBy: text(hiddenBy) }
      if (preview === undefined) return {}
      const { value, unmatched } = maskBody(preview, of(source).masks, text)
      return unmatched === undefined ? { preview: value } : { hiddenBy: unmatched }
    },
  }
}

const NO_MASKS = { masks: [], headers: new Set<string>() } as const

function resolved({ mask = [], maskHeaders = [] }: SourceMasks) {
  const masks = mask.map(resolveMask).filter((one) => one !== undefined)
  return { masks, headers: new Set(maskHeaders.map((name) => name.toLowerCase())) }
}

/** Names of headers that contain secrets in most systems. Their values are hidden in every source. */
const SECRET_HEADER =
  /(?:authorization|cookie|password|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credentials?)$/i

/** Whether a name ends with one of these words, also without a separator: `authToken`, `accesstoken`. */
const isSecretHeader = (name: string) => SECRET_HEADER.test(name)

/** Whether a name is hidden. */
type Hides = (name: string) => boolean

/**
 * Hides the values of hidden names in a header that contains a table or list. The catalog stores it as JSON, and cuts a
 * long one. A text that only begins like JSON is hidden if it contains such a name.
 */
function hiddenInTable(text: string, hides: Hides): string {
  if (!/^\s*[[{]/.test(text)) return text
  const names = [...text.matchAll(/"((?:[^"\\]|\\.)*)"\s*:/g)].map(([, name = '']) => name)
  if (!names.some(hides)) return text
  try {
    return JSON.stringify(withoutHidden(JSON.parse(text), hides))
  } catch {
    return MASKED
  }
}

function withoutHidden(value: unknown, hides: Hides): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one) => withoutHidden(one, hides))
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      hides(name) ? MASKED : withoutHidden(one, hides),
    ]),
  )
}
