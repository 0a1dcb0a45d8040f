import { ACRONYMS, GERMAN_ENTITY, MESSAGE_WORDS, stemOf } from './dictionary.ts'

/** The placeholder of every value. One for all kinds: the same field may have a number today and a name tomorrow. */
export const VALUE = '<v>'

/**
 * How a word looks. `kept`: a name of the program, a code or a path. `name`: capitalised, as names and the first word
 * of a sentence are. `title`: a capitalised word of the dictionary, which may be part of a name: `New York`.
 */
type Shape = 'word' | 'kept' | 'value' | 'name' | 'title'

/** A word of a message: the text between spaces. */
export interface Word {
  /** The word without the punctuation around it. */
  readonly core: string
  readonly before: string
  readonly after: string
  /** True for a name of the program in quotes, which an earlier rule kept. */
  readonly isQuoted: boolean
  /** True for a word of a language. `OrderService`, `ENOENT` and `17` are none. */
  readonly isPlain: boolean
  /** The word without its ending. `undefined`: the dictionary does not have it. */
  readonly stem: string | undefined
  /** It changes when the words next to it are read. */
  shape: Shape
}

const QUOTE = /["'`]/

/** One case, or one capital at the start. */
const PLAIN = /^\p{L}\p{Ll}*(?:['’-]\p{L}\p{Ll}*)*$|^(?!E[A-Z]{4})\p{Lu}+$/u

/** Last labels of hosts and files. */
export const HOST_OR_FILE: RegExp =
  /\.(?:com|org|net|io|de|eu|ch|at|fr|uk|nl|it|es|pl|se|us|example|test|local|localhost|internal|intern|lan|corp|cloud|dev|app|prod|staging|svc|csv|xml|json|pdf|txt|zip|gz|xlsx?|docx?|png|jpe?g|edi|dat|log|parquet|avro|html?)$/

const OPENING = '([{<"\'`«„“*'
const CLOSING = '.,;:!?)]}>"\'`»“”…*'

/** The bracket that opens what a closing one ends. */
const OPENED_BY: Readonly<Record<string, string>> = { ')': '(', ']': '[' }

/** Titles of people. */
export const HONORIFIC: RegExp = /^(?:Dr|Prof|Mr|Mrs|Ms|Mx|Sr|Jr|St|Ing)$/

/**
 * The first row that matches a core decides its shape. No row matches a value such as `A-17/b`. Each pattern reads a
 * letter once, so that none backtracks over a hostile text.
 */
const SHAPES: readonly (readonly [pattern: RegExp, shape: Shape])[] = [
  [/^\p{Ll}+(?:['’]\p{Ll}+)?$/u, 'word'],
  [/^<v>$/, 'value'],
  [/^[^\p{L}\d]*$/u, 'kept'],
  [HOST_OR_FILE, 'value'],
  // `reason=blocked`: an earlier rule replaced the value if it names no kind.
  [/^[\w.-]+=\S+$/, 'kept'],
  // Addresses and paths of schemas.
  [/^(?:[a-z]+:\/)?\/[\w.~<>[\]*$:/-]*$/, 'kept'],
  [/^(?=(?:<v>\/)*[a-z_]{2})(?:[a-z_]+|<v>)(?:\/(?:[a-z_]+|<v>))+$/, 'kept'],
  // A service with its port.
  [/^[a-z]+(?:-[a-z]+)*:<v>$/, 'kept'],
  // Statuses and error codes: an earlier rule replaced all other digits.
  [/\d/, 'kept'],
  [/^E[A-Z]{4,}$/, 'kept'],
  // Forms of companies.
  [/^(?:GmbH|mbH|SpA|SRL|SARL|LLC|Ltd|ApS|KGaA|eG|eV|o\.o)$/, 'name'],
  [HONORIFIC, 'value'],
  // Functions, fields and classes: `order.items.reduce()`, `items[<v>].sku`, `customer_id`, `OrderService`.
  [/^[\w$.]+\(\)$|^[\w$.]+#\w+\(/, 'kept'],
  [/^[\p{L}_$][\w$]*(?:\.[\w$]+)*(?:\[(?:<v>|\w+)\](?:\.[\w$]+)*)+$/u, 'kept'],
  [/^\p{L}+(?:_(?:\p{L}+|<v>))+$/u, 'kept'],
  [/^\p{Ll}{3,}<v>$/u, 'kept'],
  [/^(?=.*[A-Z])(?:[a-z]\w*\.)+[\w$]+$/, 'kept'],
  [/^(?=[A-Za-z$]*?[a-z][A-Z])[A-Za-z$]+(?:\.\w+)*$/, 'kept'],
  [/^[A-Z][\w$#]*(?:\.[\w$#]+)+$/, 'kept'],
  // Actions of a service: `s3:GetObject`.
  [/^[a-z]\w*:[A-Z]\w+$/, 'kept'],
  // Articles: `TSH-BLK-XL`.
  [/^\p{Lu}+(?:-\p{Lu}+)+$/u, 'value'],
  // Names of people, companies and places, countries and currencies.
  [/^\p{Lu}\p{L}*(?:['’.-]\p{L}+)*$/u, 'name'],
]

/** Most words are in most messages. The limit bounds the memory, about 1 MB. */
const KNOWN_MAX = 4000
/** Longer texts are values, which do not occur again. */
const KNOWN_LENGTH_MAX = 24

/** Returns the word of a text without spaces. The result for a text is always the same; a cache saves most of the time. */
export const wordOf: (token: string) => Word = cached(parseWord)

/** Returns a function that calls `parse` once for a short text that occurs often. Each result is a new object. */
export function cached<T extends object>(parse: (token: string) => T): (token: string) => T {
  const known = new Map<string, T>()
  return (token) => {
    const found = known.get(token)
    if (found !== undefined) return { ...found }
    const word = parse(token)
    if (token.length <= KNOWN_LENGTH_MAX) {
      if (known.size >= KNOWN_MAX) known.clear()
      known.set(token, { ...word })
    }
    return word
  }
}

/** Splits a text without spaces into a word and its punctuation. */
function parseWord(token: string): Word {
  let start = 0
  let end = token.length
  while (start < end && OPENING.includes(token.charAt(start)) && !token.startsWith(VALUE, start))
    start += 1
  while (end > start && isPunctuation(token, start, end)) end -= 1
  const core = token.slice(start, end)
  const before = token.slice(0, start)
  const isQuoted = QUOTE.test(before) && core !== VALUE
  const isPlain = !isQuoted && !GERMAN_ENTITY.test(core) && !ACRONYMS.has(core) && PLAIN.test(core)
  const shape = isQuoted ? 'kept' : shapeOf(core)
  const stem = isPlain ? stemOf(core.toLowerCase()) : undefined
  return { core, before, after: token.slice(end), isQuoted, isPlain, stem, shape }
}

/** Returns true when the last character is not part of the word. It is one in `items[0]`, `save()` and `<v>`. */
function isPunctuation(token: string, start: number, end: number): boolean {
  const last = token.charAt(end - 1)
  if (!CLOSING.includes(last) || token.endsWith(VALUE, end)) return false
  const open = OPENED_BY[last]
  return open === undefined || !token.includes(open, start)
}

function shapeOf(core: string): Shape {
  if (MESSAGE_WORDS.has(core)) return 'word'
  if (ACRONYMS.has(core)) return 'kept'
  if (MESSAGE_WORDS.has(core.toLowerCase())) return 'title'
  const compound = /^(\p{Ll}+)-(\p{Ll}+)$/u.exec(core)
  // `read-only` has a word of the dictionary, `globex-eu` has none.
  if (compound !== null) return compound.some((part) => MESSAGE_WORDS.has(part)) ? 'word' : 'value'
  return SHAPES.find(([pattern]) => pattern.test(core))?.[1] ?? 'value'
}
