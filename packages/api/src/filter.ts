/** The filter language, without the schemas of the API: a program that only reads filters loads less. */
export { FilterError } from './filter/error.ts'
export {
  type DeadLetterFilter,
  FILTER_FIELDS,
  type FilterField,
  type FilterKind,
  isBoundedFilter,
} from './filter/fields.ts'
export { parseFilter } from './filter/parse.ts'
export { type FilterWord, filterWords, formatFilterWord } from './filter/words.ts'
