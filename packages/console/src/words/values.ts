/** The text that the server writes instead of a value that the caller may not see. */
export const MASKED = '***'

/** Returns the value of a header as a text. */
export const valueText = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
