import { parseExact } from './json-lines.ts'

/** Returns JSON with a line for each value, if this loses no digit of a number. Other text stays as it is. */
export function prettyText(text: string): string {
  const parsed = parseExact(text)
  if (parsed === undefined) return text
  return keepsNumbers(text) ? JSON.stringify(JSON.parse(text), null, 2) : text
}

/** Whether a text is JSON. */
export const isJson = (text: string): boolean => parseExact(text) !== undefined

/** Whether a JSON text has the same numbers after it is parsed. 12345678901234567890 and 1.10 would change. */
export const keepsNumbers = (text: string): boolean =>
  numbersOf(text).join() === numbersOf(JSON.stringify(JSON.parse(text))).join()

/** Returns the numbers of a JSON text as they are written. */
const numbersOf = (text: string) =>
  text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').match(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g) ?? []

export type EditedBody =
  | { readonly kind: 'same' }
  | { readonly kind: 'invalid'; readonly problem: string }
  | { readonly kind: 'changed'; readonly base64: string }

/** Compares the edited text with the original. A body that was JSON must stay JSON. */
export function editedBody(original: string, typed: string): EditedBody {
  const plain = withLineFeeds(typed)
  if ([original, prettyText(original)].some((text) => withLineFeeds(text) === plain))
    return { kind: 'same' }
  if (isJson(original)) {
    try {
      JSON.parse(typed)
    } catch (error) {
      if (error instanceof SyntaxError)
        return { kind: 'invalid', problem: `Not JSON: ${error.message}.` }
      throw error
    }
  }
  const bytes = new TextEncoder().encode(withLineEndsOf(original, plain))
  const chars = Array.from(bytes, (byte) => String.fromCharCode(byte))
  return { kind: 'changed', base64: btoa(chars.join('')) }
}

const LINE_END = /\r\n|\r|\n/g

/** Returns a text with the line ends of a text area, which replaces all others. */
const withLineFeeds = (text: string): string => text.replaceAll(LINE_END, '\n')

/**
 * Returns an edited text with the line ends of the original. Unchanged lines at the start and at the end keep theirs. Other
 * lines get the first one of the original.
 */
function withLineEndsOf(original: string, typed: string): string {
  const ends = original.match(LINE_END) ?? []
  const [usual = '\n'] = ends
  const before = original.split(LINE_END)
  const after = typed.split('\n')
  const last = after.length - 1
  const most = Math.min(ends.length, last)
  let start = 0
  while (start < most && before[start] === after[start]) start += 1
  let end = 0
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1
  const endOf = (line: number) => {
    if (line === last) return ''
    if (line < start) return ends[line]
    return line >= last - end ? ends[line + ends.length - last] : usual
  }
  return after.map((line, at) => `${line}${endOf(at) ?? usual}`).join('')
}
