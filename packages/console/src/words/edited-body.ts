import { parseExact } from './json-lines.ts'

/** Returns JSON with a line for each value, if this loses no digit of a number. Other text stays as it is. */
export function prettyText(text: string): string {
  const parsed = parseExact(text)
  if (parsed === undefined) return text
  return keepsNumbers(text) ? JSON.stringify(JSON.parse(text), null, 2) : text
}

/** Whether a JSON text has the same numbers after it is parsed. 12345678901234567890 and 1.10 would change. */
export const keepsNumbers = (text: string): boolean =>
  numbersOf(text).join() === numbersOf(JSON.stringify(JSON.parse(text))).join()

/** Returns the numbers of a JSON text as they are written. */
const numbersOf = (text: string) =>
  text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').match(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g) ?? []

export type Edited =
  | { readonly kind: 'same' }
  | { readonly kind: 'invalid'; readonly problem: string }
  | { readonly kind: 'changed'; readonly base64: string }

/** Compares the edited text with the original. A body that was JSON must stay JSON. */
export function editedBody(original: string, typed: string): Edited {
  if (typed === original || typed === prettyText(original)) return { kind: 'same' }
  if (parseExact(original) !== undefined) {
    try {
      JSON.parse(typed)
    } catch (error) {
      if (error instanceof SyntaxError)
        return { kind: 'invalid', problem: `Not JSON: ${error.message}.` }
      throw error
    }
  }
  const bytes = new TextEncoder().encode(typed)
  const chars = Array.from(bytes, (byte) => String.fromCharCode(byte))
  return { kind: 'changed', base64: btoa(chars.join('')) }
}
