/** A span, as the W3C header `traceparent` names it. */
export interface TraceParent {
  /** 32 hex digits. */
  readonly traceId: string
  /** 16 hex digits. */
  readonly spanId: string
  readonly flags: number
}

const FORMAT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/**
 * Reads a W3C `traceparent`; returns undefined when it is absent or not valid. Later versions may append fields, which
 * are ignored.
 */
export function parseTraceparent(value: unknown): TraceParent | undefined {
  const match = typeof value === 'string' ? FORMAT.exec(value) : null
  if (match === null) return undefined
  const [, version, traceId = '', spanId = '', flags = '', rest] = match
  const isVersion = version !== 'ff' && (version !== '00' || rest === undefined)
  const isSpan = /[^0]/.test(traceId) && /[^0]/.test(spanId)
  if (!isVersion || !isSpan) return undefined
  return { traceId, spanId, flags: Number.parseInt(flags, 16) }
}

/** Returns true for a W3C `traceparent` of version 0. Later versions have no bounded length and are not stored. */
export const isTraceparent = (value: unknown): value is string =>
  typeof value === 'string' && value.startsWith('00-') && parseTraceparent(value) !== undefined
