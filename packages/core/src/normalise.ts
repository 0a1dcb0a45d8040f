import { SIGNED_MAX } from './classify/text.ts'
import { clip } from './text.ts'

/** Maximum length without names and numbers. A longer tail is usually noise. */
const NORMALISED_MAX = 300

/** Half of that for an error that wraps another: its cause describes the other half. */
const OUTER_NORMALISED_MAX = 150

/** A pattern, its replacement, and a text without which the pattern cannot match. Most messages contain few of them. */
type Placeholder = readonly [from: RegExp, to: string | Replace, needs?: string | RegExp]

type Replace = (found: string, at: number, text: string) => string

const DIGIT = /\d/
/** Six hex digits. V8 matches `{3}` twice three times as fast. */
const HEX = /(?:[\da-fA-F]{3}){2}/

/** An apostrophe inside a word is not a quote. */
const QUOTES = /"[^"]*"|`[^`]*`|(?<!\w)'[^']*'(?!\w)|[“„][^“”]*[“”]|«[^»]*»/g

const MONTHS = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec'
const MONEY = 'EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CAD|AUD|BRL|MXN|[€$£¥₹]'
/** Units of time, size and order. The same failure may contain `950ms` once and `1.2 s` later. */
const UNITS =
  'ns|[µμu]s|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|[kmgt]?i?b|bytes?|st|nd|rd|th'

/** Words in -s that often follow an id. Any other word only looks odd without its s, and still groups correctly. */
const VERBS =
  'does|exists|requires|needs|fails|contains|expects|exceeds|belongs|lacks|misses|matches|returns|always'

/**
 * In this order: a larger item before its parts. Each pattern starts only where its kind of word
 * starts, or is bounded, so that none backtracks over a hostile text.
 */
const PLACEHOLDERS: readonly Placeholder[] = [
  // A token may itself be a quote.
  [/(?<=Unexpected token )'.{1,2}'(?=, )/s, '<str>', 'JSON'],
  // V8 quotes the text it could not parse, including the quotes in it, and adds dots where it was cut.
  [/(?:\.{3})?".*"(?:\.{3})?(?= is not valid JSON)/s, '<str>', 'JSON'],
  // Since Node 22 the message contains the position twice.
  [/ \(line \d+ column \d+\)/, '', ' (line '],
  // Jackson adds it too, after a piece of the text.
  [/\[Source: .*?; line: -?\d+, column: -?\d+\]/s, '[Source]', '[Source: '],
  // Postgres: `Key (email)=(bob@example.org) already exists`.
  [/\)=\([^)]*\)/g, ')=(<str>)', ')=('],
  // The query of a URL, so that a URL with one and a URL without one are equal.
  [/(\/[\w.~%@:+-]*)\?[\w.~%@:+,;&[\]-]*=[^\s"'`)]*/g, '$1', '?'],
  [QUOTES, quoted],
  [/(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{1,255}/g, '<email>', '@'],
  [/(?<![a-z\d])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![a-z\d])/gi, '<uuid>', '-'],
  [
    /(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)/g,
    '<time>',
    '-',
  ],
  // `Sun, 15 Nov 2026 16:10:06 GMT`, and the text of a Date in a template.
  [
    new RegExp(
      `(?<!\\w)(?:[A-Z][a-z]{2,8},? )?(?:\\d\\d? (?:${MONTHS})[a-z]{0,6}|(?:${MONTHS})[a-z]{0,6} \\d\\d?),? 20\\d\\d` +
        '(?:,? \\d\\d?:\\d\\d(?::\\d\\d)?(?: [AP]M)?)?(?: (?:GMT|UTC)(?:[+-]\\d{4}(?: \\([^)]{0,60}\\))?)?)?',
      'g',
    ),
    '<time>',
    ' 20',
  ],
  [/(?<![\w:])\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AP]M)?(?![\w:])/g, '<time>', ':'],
  [/(?<![\w.])(?:::ffff:)?\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?!\w|\.\d)/gi, '<ip>', '.'],
  // The last group may be a port: Node prints `::1:5432`, other programs `[::1]:5432`.
  [/(?<![\w:])\[(?:[0-9a-f]{0,4}:){2,8}[0-9a-f]{1,4}\](?::\d{1,5})?(?!\w)/gi, '<ip>', ':'],
  [/(?<![\w:])(?:[0-9a-f]{0,4}:){2,8}[0-9a-f]{1,5}(?:%\w{1,15})?(?![\w:])/gi, '<ip>', ':'],
  // Kubernetes: the hash of a template, and five characters without vowels.
  [/-[4-9bcdf]{8,10}-[b-df-hj-np-tv-xz2-9]{5}(?![\w-])/g, '-<pod>', '-'],
  // With decimals, money and units. An id such as `12ab` is not a number.
  [
    new RegExp(
      `(?<![\\w.])(?:(?:${MONEY}) ?)?[-+]?\\d+(?:[.,'’\u00a0\u202f]\\d+)*(?:e[-+]?\\d+)?(?:[ \u00a0\u202f]?(?:${UNITS}|${MONEY}))?(?![a-z\\d])`,
      'gi',
    ),
    unlessCode,
    DIGIT,
  ],
  // Six and seven only with a digit: `facade` and `decades` are words.
  [/(?<![a-z\d])(?:[0-9a-f]{8,}|(?=[a-f]*\d)[0-9a-f]{6,7})(?![a-z\d])/gi, unlessCode, HEX],
  // base64, JWTs, nanoids. A digit between letters distinguishes them from `Order-Service-20260101`.
  [/(?<![\w+=-])([a-z]{2,8}[_-])?(?=[\w+=-]*[a-z]\d+[a-z])[\w+=-]{20,}/gi, '$1<n>', DIGIT],
  // `cus_NffrFeUfNVaHib`: a random id may have no digits, but it has both cases.
  [/(?<=[a-z]_)(?=[a-z\d]*[A-Z])(?=[A-Z\d]*[a-z])[A-Za-z\d]{12,}/g, '<n>', '_'],
  // Without any digit: one or two small letters between capitals, three times, are not a name.
  [
    /(?<![A-Za-z\d])(?=(?:[A-Za-z\d]{0,20}?[A-Z\d][a-z]{1,2}(?=[A-Z\d])){3})[A-Za-z\d]{12,}/g,
    '<n>',
    /[A-Z][a-z]{1,2}[A-Z\d]/,
  ],
  // Ids such as `a1b2`, hex and plain numbers share one placeholder, since a random id can look
  // like any of them. `user42` keeps its letters, because they are a name.
  [/(?<![a-z\d])(?:[a-z]+\d+[a-z]|\d+[a-z]+\d|\d+[a-z]{3})[a-z\d]*/gi, '<n>', DIGIT],
  [/\d+/g, unlessCode, DIGIT],
  [/\s+/g, ' ', /\s\s|[^\S ]/],
  // Singular and plural become equal: one line or three, one id or ten.
  [new RegExp(`(<n> (?!(?:${VERBS})(?![a-z]))[a-z]{3,}?)(?<![sui])s(?![a-z])`, 'gi'), '$1', '<n> '],
  [/(?<![\w#-])([\w#-]{0,20}<\w{1,5}>)(?:(?:, ?| and )\1)+/g, '$1', />(?:,| and )/],
]

/** Returns the message with its ids, numbers and quoted values replaced. */
export function normaliseMessage(message: string): string {
  const text = clip(message, SIGNED_MAX)
  const cause = text.indexOf('; caused by ')
  if (cause === -1) return clip(replaced(text), NORMALISED_MAX)
  const outer = clip(replaced(text.slice(0, cause)), OUTER_NORMALISED_MAX)
  return clip(`${outer}; ${replaced(text.slice(cause + 2))}`, NORMALISED_MAX)
}

function replaced(message: string): string {
  let text = message
  for (const [from, to, needs = ''] of PLACEHOLDERS) {
    if (typeof needs === 'string' ? !text.includes(needs) : !needs.test(text)) continue
    // Both branches do the same; the compiler has no overload for both types.
    text = typeof to === 'string' ? text.replace(from, to) : text.replace(from, to)
  }
  // A payload with one bad line and one with five have the same problem.
  return (text.includes('; ') ? [...new Set(text.split('; '))].join('; ') : text).trim()
}

/** How many characters are read to the left and right: more than the longest word of the patterns below. */
const LOOK = 16

/** Words before a quote that mark a name of the program or its database. Such names do not vary by message. */
const NAMES_NEXT =
  /\b(?:constraint|column|relation|table|index|for key|type|field|propert(?:y|ies)|parameter|argument|option|attribute|header|module|package|reading|setting|invoke|method|function|class|exchange|queue|topic)s?[ :(=]{1,3}$/i

/** The same for words after a quote. */
const NAMED_LAST = /^ (?:argument|property|field|column|parameter|option|must be|is required)/

const NAME = /^.[\w$.:()[\]/-]{1,80}.$/

/** `with message "NOT_FOUND - no queue 'a'"`: the quoted text is itself a message. */
const QUOTES_MESSAGE = /(?:with|error) message:? $/

function quoted(found: string, at: number, text: string): string {
  const before = text.slice(Math.max(0, at - LOOK), at)
  const end = at + found.length
  if (NAME.test(found)) {
    const isNamed = NAMES_NEXT.test(before) || NAMED_LAST.test(text.slice(end, end + LOOK))
    if (isNamed || /^.[a-z]{2,8}:\/\//.test(found)) return found
  }
  return QUOTES_MESSAGE.test(before) ? found.slice(1, -1).replace(QUOTES, quoted) : '<str>'
}

/** `HTTP 404`, `status code 404`, `error code 17`, `E1001`, `ORA-00001`: numbers that name a kind of failure. */
const CODE_NEXT =
  /(?:^|\W)(?:(?:HTTP|[Ss]tatus|[Ee]rrno|(?:[Ss]tatus|[Ee]rror|[Ee]xit|[Rr]esponse|[Rr]esult|[Rr]eason|with)[ _-]?[Cc]ode)[ :=#]{1,2}|[Ee]rror |ORA-|ERR[-_]?|E)$/

const CODE = /^E?\d{1,5}$/

function unlessCode(found: string, at: number, text: string): string {
  if (!CODE.test(found)) return '<n>'
  if (found.startsWith('E')) return found
  return CODE_NEXT.test(text.slice(Math.max(0, at - LOOK), at)) ? found : '<n>'
}
