import { MESSAGE_WORDS } from './dictionary.ts'
import { VALUE } from './word.ts'
import { clip } from '../text.ts'

/** Maximum length of a value that names a kind. A longer one is a text for people. */
const VALUE_MAX = 120

/** Kinds of one body. A response with a hundred issues has few different kinds. */
const KINDS_MAX = 8

/** Keys whose values name the kind of a failure, in the bodies of most APIs. */
const CODE_KEYS =
  'code|errorCode|error_code|errorType|error_type|errorKey|reason|reasonCode|reason_code|issue|decline_code|declineCode|refusalReason|resultCode|field|param|parameter|pointer|property|keyword|constraint|rule|loc|path|faultcode'

/** Keys of texts for people. A name alone, as in `"title": "Mug"`, does not explain a failure. */
const TEXT_KEYS =
  'error|error_description|faultstring|message|msg|detail|details|description|title|errorMessage|error_message'

/** Keys that name a kind in some bodies, and a person or an order in others. Their value must look like a code. */
const WEAK_KEYS = 'name|type|status|state|kind|category|target'

/** `INVALID_IBAN`, `invalid_type`, `CardError`, `422`. */
const CODE_LIKE =
  /^(?:[A-Z]{2,}(?:_[A-Z]+)+|[a-z]+(?:_[a-z]+)+|\w{3,}(?:Error|Exception)|[1-5]\d\d)$/

const KEY_OF_CODE = new RegExp(`^(?:${CODE_KEYS})$`)
const KEY_OF_TEXT = new RegExp(`^(?:${TEXT_KEYS})$`)

/**
 * A key and its value: JSON, or an object as Node, Python or Java prints it. Each part is bounded, because a body may
 * have any content.
 */
const ENTRY = new RegExp(
  `(?<![\\w.])["']?(${CODE_KEYS}|${TEXT_KEYS}|${WEAK_KEYS})["']?\\s{0,4}[:=]\\s{0,4}` +
    `(?:"((?:[^"\\\\]|\\\\.){0,300})"|'([^']{0,300})'|(\\d{1,6})(?![\\w.])|\\[([^\\][{}]{0,200})\\]|([A-Za-z][\\w.]{0,80}))`,
  'g',
)

/** A brace or bracket that begins a body. `items["a"]`, `[Errno 2]`, `'{'` and `{id}` do not. */
const KEY = String.raw`\s{0,20}(?:\\?["'][\w$. -]{1,60}\\?["']\s?:|[\w.-]{1,40}\s?[:=])`
const BODY_START = new RegExp(
  String.raw`\{(?=${KEY})|(?<![\w\])"'` +
    '`' +
    String.raw`])\[(?=\s{0,20}(?:\{${KEY}|["'][^"'\n]{0,200}["']\s?[,\]]))`,
  'g',
)

/** What may follow a body at the end of a message. */
const ENDS = /^[\s\])}.,;:"'>]*$/

/**
 * Replaces bodies in a message. A body at the end becomes its kinds: it is the response that explains the failure. A
 * body before other words is a payload, and only its braces remain.
 */
export function foldBodies(text: string): string {
  let folded = ''
  let from = 0
  BODY_START.lastIndex = 0
  for (let found = BODY_START.exec(text); found !== null; found = BODY_START.exec(text)) {
    const end = endOfBody(text, found.index)
    if (end === undefined) break
    const isLast = ENDS.test(text.slice(end))
    const kinds = isLast ? kindsOfText(text.slice(found.index, end)) : []
    // A list of texts or numbers is a value.
    const isList = /^\[\s{0,20}["']/.test(text.slice(found.index, found.index + 24))
    folded += text.slice(from, found.index) + (isList ? VALUE : `{${kinds.join('; ')}}`)
    from = end
    BODY_START.lastIndex = end
  }
  return folded + text.slice(from)
}

/** The start of JSON, which is a body even if the text was cut in it. */
const JSON_START = /^(?:\[\s{0,20})?\{\s{0,20}\\?"/

/** Returns the place behind the body. Returns undefined when it has no end. */
function endOfBody(text: string, start: number): number | undefined {
  let depth = 0
  let isString = false
  for (let at = start; at < text.length; at += 1) {
    const letter = text[at]
    if (letter === '\\') at += 1
    else if (letter === '"') isString = !isString
    else if (isString) continue
    else if (letter === '{' || letter === '[') depth += 1
    else if ((letter === '}' || letter === ']') && (depth -= 1) === 0) return at + 1
  }
  return JSON_START.test(text.slice(start, start + 48)) ? text.length : undefined
}

/** Returns the kinds in the text of a body, such as `code: invalid_type`, in the order of the alphabet. */
export function kindsOfText(body: string): readonly string[] {
  const kinds = new Set<string>()
  // A body in a text of another body has backslashes before its quotes.
  const text = body.replaceAll('\\"', '"')
  for (const [, key = '', double, single, number, list = '', word] of text.matchAll(ENTRY)) {
    const value = double ?? single ?? number ?? word ?? stepsOf(list)
    const kind = kindOf(key, value)
    if (kind !== undefined) kinds.add(kind)
    if (kinds.size === KINDS_MAX) break
  }
  return [...kinds].sort()
}

/** Returns `key: value` for a code, the value alone for a text, and undefined for a value that names no kind. */
export function kindOf(key: string, value: string): string | undefined {
  if (value === '' || value === 'null') return undefined
  const short = clip(value, VALUE_MAX)
  if (CODE_LIKE.test(value) || KEY_OF_CODE.test(key)) return `${key}: ${short}`
  return KEY_OF_TEXT.test(key) && isMessage(value) ? short : undefined
}

/** Returns true for a text with words of error messages. */
function isMessage(text: string): boolean {
  const words = [...text.toLowerCase().matchAll(/\p{L}{2,}/gu)]
  const known = words.filter(([word]) => MESSAGE_WORDS.has(word)).length
  return known > 1 || (known === 1 && !/\d/.test(text))
}

/** Returns the path of a schema without the positions in lists: `"lines", 3, "price"` becomes `lines/price`. */
function stepsOf(list: string): string {
  return [...list.matchAll(/["']([^"']+)["']/g)].map(([, step]) => step).join('/')
}
