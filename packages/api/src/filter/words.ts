import { FilterError } from './error.ts'

/** A word of a filter, without its quotes. */
export interface FilterWord {
  /** Position in the text. */
  readonly at: number
  /** The part before the first colon; undefined if the word has no colon outside of quotes. */
  readonly field: string | undefined
  readonly value: string
  /** Position of the value in the text. */
  readonly valueAt: number
  /** Positions in the value where quotes begin. */
  readonly quotes: readonly number[]
}

/** Splits a filter at spaces. Quotes keep spaces together and may begin anywhere in a word; `\` escapes `"` and `\` in them. */
export function filterWords(text: string): readonly FilterWord[] {
  const words: FilterWord[] = []
  const spaces = /\s*/y
  for (let at = 0; ; ) {
    spaces.lastIndex = at
    at += spaces.exec(text)?.[0].length ?? 0
    if (at >= text.length) return words
    const { word, end } = readWord(text, at)
    words.push(word)
    at = end
  }
}

function readWord(text: string, start: number): { word: FilterWord; end: number } {
  let at = start
  let value = ''
  let field: string | undefined
  let valueAt = start
  let quotes: number[] = []
  while (at < text.length && !/\s/.test(text.charAt(at))) {
    const char = text.charAt(at)
    if (char === '"') {
      quotes.push(value.length)
      const quoted = readQuoted(text, at)
      value += quoted.value
      at = quoted.end
    } else if (char === ':' && field === undefined && quotes.length === 0) {
      field = value
      value = ''
      quotes = []
      at += 1
      valueAt = at
    } else {
      value += char
      at += 1
    }
  }
  return { word: { at: start, field, value, valueAt, quotes }, end: at }
}

function readQuoted(text: string, start: number): { value: string; end: number } {
  let value = ''
  for (let at = start + 1; at < text.length; at += 1) {
    const char = text.charAt(at)
    if (char === '"') return { value, end: at + 1 }
    if (char === '\\' && '"\\'.includes(text.charAt(at + 1) || ' ')) {
      at += 1
      value += text.charAt(at)
    } else value += char
  }
  throw new FilterError(text, start, 'Expected a closing quote, as in "eu bank".')
}

/** Returns a word of a filter. It has quotes if it needs them. */
export function formatFilterWord(field: string | undefined, value: string): string {
  const isPlain =
    value !== '' && !/[\s"\\]/.test(value) && (field !== undefined || !value.includes(':'))
  const shown = isPlain ? value : `"${value.replaceAll(/["\\]/g, '\\$&')}"`
  return field === undefined ? shown : `${field}:${shown}`
}
