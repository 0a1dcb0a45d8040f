import { VALUE } from './word.ts'

/** A pattern, its replacement, and a text without which the pattern cannot match. Most messages contain few of them. */
export type Rule = readonly [from: RegExp, to: string | Replace, needs?: string | RegExp]

type Replace = (found: string, ...groups: readonly string[]) => string

const DIGIT = /\d/
/** Six hex digits. V8 matches `{3}` twice three times as fast. */
const HEX = /(?:[\da-fA-F]{3}){2}/

const MONTHS = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec'
const MONEY =
  'EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|RON|TRY|CAD|AUD|NZD|BRL|MXN|ZAR|SGD|HKD|AED|[€$£¥₹]'
/** Units of time, size, weight and order. The same failure may contain `950ms` once and `1.2 s` later. */
const UNITS =
  'ns|[µμu]s|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|weeks?|months?|[kmgt]?i?b|bytes?|kg|g|cm|mm|km|%|[ap]m|st|nd|rd|th'

/** Words in -s that often follow an id. Any other word only looks odd without its s, and still groups correctly. */
const VERBS =
  'does|exists|requires|needs|fails|contains|expects|exceeds|belongs|lacks|misses|matches|returns|always'

/**
 * In this order: a larger item before its parts. Each pattern starts only where its kind of word
 * starts, or is bounded, so that none backtracks over a hostile text.
 */
export const VALUES: readonly Rule[] = [
  [/(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{1,255}/g, VALUE, '@'],
  [/(?<![a-z\d])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![a-z\d])/gi, VALUE, '-'],
  [
    /(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)/g,
    VALUE,
    '-',
  ],
  // `Sun, 15 Nov 2026 16:10:06 GMT`, and the text of a Date in a template.
  [
    new RegExp(
      `(?<!\\w)(?:[A-Z][a-z]{2,8},? )?(?:\\d\\d?\\.? (?:${MONTHS})[a-z]{0,6}|(?:${MONTHS})[a-z]{0,6} \\d\\d?),? 20\\d\\d` +
        '(?:,? \\d\\d?:\\d\\d(?::\\d\\d)?(?: [AP]M)?)?(?: (?:GMT|UTC)(?:[+-]\\d{4}(?: \\([^)]{0,60}\\))?)?)?',
      'g',
    ),
    VALUE,
    ' 20',
  ],
  [/(?<![\w:])\d\d?:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?[AP]M)?(?![\w:])/g, VALUE, ':'],
  // Days and months without a date.
  [
    /(?<![\p{L}\d])(?:(?:[Mm]on|[Tt]ues|[Ww]ednes|[Tt]hurs|[Ff]ri|[Ss]atur|[Ss]un)day(?:s?(?: morning| afternoon| evening)?)|today|tomorrow|yesterday|noon|midnight|January|February|March|April|June|July|August|September|October|November|December)(?![\p{L}\d])/gu,
    VALUE,
    /day|tomorrow|noon|midnight|[A-Z][a-z]+(?:y|h|l|e|t|r)/,
  ],
  [/(?<![\w.])(?:::ffff:)?\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?!\w|\.\d)/gi, VALUE, '.'],
  // The last group may be a port: Node prints `::1:5432`, other programs `[::1]:5432`.
  [/(?<![\w:])\[(?:[0-9a-f]{0,4}:){2,8}[0-9a-f]{1,4}\](?::\d{1,5})?(?!\w)/gi, VALUE, ':'],
  [/(?<![\w:])(?:[0-9a-f]{0,4}:){2,8}[0-9a-f]{1,5}(?:%\w{1,15})?(?![\w:])/gi, VALUE, ':'],
  // Kubernetes: a pod or a service in the cluster. The name of the service stays.
  [
    /(?<![\w.-])(?:[\w-]{1,63}\.)*?([\w-]{1,63})\.[\w-]{1,63}\.svc(?:\.cluster\.local)?(?![\w.-])/g,
    '$1',
    '.svc',
  ],
  // The hash of a template, and five characters without vowels.
  [/-[4-9bcdf]{8,10}-[b-df-hj-np-tv-xz2-9]{5}(?![\w-])/g, `-${VALUE}`, '-'],
  // With decimals, money and units. An id such as `12ab` is not a number.
  [
    new RegExp(
      `(?<![\\w.])(?:(?:${MONEY}) ?)?[-+]?\\d+(?:[.,'’\u00a0\u202f]\\d+)*(?:e[-+]?\\d+|,-)?(?:[ \u00a0\u202f]?(?:${UNITS}|${MONEY}))?(?![\\p{L}\\d])`,
      'giu',
    ),
    unlessCode,
    DIGIT,
  ],
  // Six and seven only with a digit: `facade` and `decades` are words.
  [/(?<![a-z\d])(?:[0-9a-f]{8,}|(?=[a-f]*\d)[0-9a-f]{6,7})(?![a-z\d])/gi, unlessCode, HEX],
  // base64, JWTs, nanoids. A digit between letters distinguishes them from `Order-Service-20260101`.
  [/(?<![\w+=-])([a-z]{2,8}[_-])?(?=[\w+=-]*[a-z]\d+[a-z])[\w+=-]{20,}/gi, `$1${VALUE}`, DIGIT],
  // `cus_NffrFeUfNVaHib`: a random id may have no digits, but it has both cases.
  [/(?<=[a-z]_)(?=[a-z\d]*[A-Z])(?=[A-Z\d]*[a-z])[A-Za-z\d]{12,}/g, VALUE, '_'],
  // Without any digit: one or two small letters between capitals, three times, are not a name.
  [
    /(?<![A-Za-z\d])(?=(?:[A-Za-z\d]{0,20}?[A-Z\d][a-z]{1,2}(?=[A-Z\d])){3})[A-Za-z\d]{12,}/g,
    VALUE,
    /[A-Z][a-z]{1,2}[A-Z\d]/,
  ],
  // Ids such as `a1b2`, hex and plain numbers share one placeholder, since a random id can look
  // like any of them. `user42` keeps its letters, because they are a name.
  [/(?<![a-z\d])(?:[a-z]+\d+[a-z]|\d+[a-z]+\d|\d+[a-z]{3})[a-z\d]*/gi, VALUE, DIGIT],
  [/\d+/g, unlessCode, DIGIT],
]

const SINGULAR: Readonly<Record<string, string>> = { are: 'is', were: 'was', have: 'has' }

/** After the names are replaced: values next to each other become one, and words become equal. */
export const RUNS: readonly Rule[] = [
  // An id in the path of an address.
  [/(?<=\/)[\w.%~-]{0,80}-<v>[\w.%~<>-]{0,80}/g, VALUE, '/'],
  // The point of an abbreviation: `St. Gallen`, `Acme Inc. is`.
  [/(?<=<v>)\.(?= (?:\p{Ll}|<v>)|$)/gu, '', '<v>.'],
  // Optional remarks: `(<v>)`, `[<v>]`.
  [/ (?:\(<v>(?:,? <v>)*\)|\[<v>(?:,? <v>)*\])/g, '', /[([]<v>/],
  [
    /<v>(?:(?:[,;]? |[,/|+]| ?[-–—→] ?|->| (?:and|or|und|oder|et|ou|y|&|x|@) |, (?:and|or) )<v>)+/g,
    VALUE,
    /<v>[^<]{1,6}<v>/,
  ],
  // Singular and plural become equal: one line or three, one id or ten.
  [/(\p{L}{2,})(?<![sui])s(?=:? <v>)/gu, '$1', '<v>'],
  [/(?<= )(?:are|were|have)(?= )/g, (verb) => SINGULAR[verb] ?? verb, '<v>'],
  [new RegExp(`(<v> (?!(?:${VERBS})(?![a-z]))[a-z]{3,}?)(?<![sui])s(?![a-z])`, 'gi'), '$1', '<v> '],
  [/(?<![\w#-])([\w#-]{0,20}<v>)(?:(?:, ?| and )\1)+/g, '$1', />(?:,| and )/],
]

/** How many characters are read to the left and right: more than the longest word of the patterns below. */
const LOOK = 24

/** `HTTP 404`, `status code 404`, `error code 17`, `E1001`, `ORA-00001`: numbers that name a kind of failure. */
const CODE_NEXT =
  /(?:^|\W)(?:(?:HTTP|[Ss]tatus|[Ee]rrno|SQLSTATE|(?:[Ss]tatus|[Ee]rror|[Ee]xit|[Rr]esponse|[Rr]esult|[Rr]eason|[Rr]eturn|[Dd]ecline|sub|with)[ _-]?[Cc]ode)[ :=#([]{1,2}|[Ee]rror |ORA-|ERR[-_]?|(?:[Cc]ode|[Ee]rror|[Rr]eason)[:=] ?[A-Z]{1,5}[-_]?)$|(?:^|[{;(,[] ?)[Cc]ode[:=] ?$/

/** `failed: 422`, `returned 503`, `[404 Not Found]`: a number that is a status of HTTP. */
const STATUS_NEXT =
  /(?:(?:failed|returned|responded|answered|got|received|gave|replied|with|->|=>)[: ([]{1,3}|^[[(]?)$/i
const STATUS_LAST = /^(?:$|[\])}:;,.]|:? [A-Z{])/

const CODE = /^(?:E\d{4,5}|\d{1,5})$/
const STATUS = /^[45]\d\d$/

function unlessCode(found: string, ...rest: readonly unknown[]): string {
  if (!CODE.test(found)) return VALUE
  if (found.startsWith('E')) return found
  const [at, text] = rest.slice(-2) as [number, string]
  const before = text.slice(Math.max(0, at - LOOK), at)
  if (CODE_NEXT.test(before) || isErrorNumber(before, found)) return found
  const end = at + found.length
  const isStatus = STATUS.test(found) && isStatusPlace(before, text.slice(end, end + LOOK))
  return isStatus ? found : VALUE
}

/** `E1001` is a code. `E17` may be a room. */
function isErrorNumber(before: string, found: string): boolean {
  return found.length > 3 && /(?:^|\W)E$/.test(before)
}

function isStatusPlace(before: string, after: string): boolean {
  return STATUS_NEXT.test(before) && (STATUS_LAST.test(after) || before.endsWith(': '))
}
