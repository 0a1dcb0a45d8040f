/** Returns at most `max` UTF-16 units and never cuts a surrogate pair. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text
  const last = text.charCodeAt(max - 1)
  const end = last >= 0xd800 && last <= 0xdbff ? max - 1 : max
  return detach(text.slice(0, end))
}

/** Copies a slice. V8 keeps the whole original text in memory for a plain slice, as long as the failure lives. */
export function detach(slice: string): string {
  return ` ${slice}`.slice(1)
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Formats a value for a message: short, and without throwing. */
export function shown(value: unknown): string {
  if (typeof value === 'string')
    return value.length > 40 ? `'${value.slice(0, 40)}…'` : `'${value}'`
  if (typeof value === 'function') return 'a function'
  if (Array.isArray(value)) return 'an array'
  return isRecord(value) ? 'an object' : String(value)
}
