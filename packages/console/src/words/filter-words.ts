import { type FilterWord, filterWords } from '@redrive/api/filter'

/** A word with its text as the user wrote it. Quotes have a meaning in some fields. */
export interface WordText extends Pick<FilterWord, 'field' | 'value'> {
  readonly text: string
}

/** Returns the words of a filter with their texts. Throws a `FilterError` if it cannot be read. */
export function wordTexts(filter: string): readonly WordText[] {
  const words = filterWords(filter)
  return words.map(({ at, field, value }, index) => ({
    field,
    value,
    text: filter.slice(at, words[index + 1]?.at).trimEnd(),
  }))
}
