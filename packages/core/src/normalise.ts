import { READ_MAX, SIGNED_MAX } from './classify/text.ts'
import { foldBodies } from './grouping/body.ts'
import { KIND_KEY, MESSAGE_WORDS } from './grouping/dictionary.ts'
import { keywordsOf } from './grouping/keywords.ts'
import { replaceNames } from './grouping/names.ts'
import { QUOTES, replaceQuote } from './grouping/quotes.ts'
import { type Rule, RUNS, VALUES } from './grouping/values.ts'
import { VALUE } from './grouping/word.ts'
import { clip } from './text.ts'

/** Maximum length without names and numbers. A longer tail is usually noise. */
const NORMALISED_MAX = 300

/** Half of that for an error that wraps another: its cause describes the other half. */
const OUTER_NORMALISED_MAX = 150

const KIND_VALUE = /^["']?(?:[A-Za-z][\w.-]*|\d{1,5})["']?$/

/** Words before a colon after which a single word is a reason, not a value: `request refused: timeout`. */
const REASON_NEXT =
  /(?:ed|error|errors|exception|failure|invalid|missing|required|because|cannot|not|unexpected|of|properties|scopes?|permissions?|headers?)$/i

/** Rules for text that may be long. They run before the message is shortened. */
const LONG_TEXTS: readonly Rule[] = [
  // Prisma shows the code around the call. The last paragraph has the reason.
  [/(?<= invocation)[^]*\n\n/, '\n', ' invocation'],
  // The values that differ, as node:assert prints them.
  [/\n\+ actual - expected[^]*/, '', '\n+ actual - expected'],
  // Jackson adds the position after a piece of the text.
  [/\[Source: .{0,1000}?; line: -?\d+, column: -?\d+\]/gs, '[Source]', '; line: '],
  // Statements of SQL: the number of values differs. The verb and the table stay.
  [
    /\b(insert into|delete from|update) (["`\w.]{1,80})(?= (?:\(|set |where |values))[^\n]*?(?= - |\n|$)/gi,
    (_, verb, table) => `${verb} ${tableOf(table)}`,
    / (?:into|from|set) /i,
  ],
  [/\nparams: [^\n]*/g, '', '\nparams: '],
  [
    /\bselect\b[^\n]{0,300}? from (["`\w.]{1,80})[^\n]*?(?= - |\n|$)/gi,
    (_, table) => `select ${tableOf(table)}`,
    / from /i,
  ],
]

/** Rules for text that is longer than a word. They run before the values in it are replaced. */
const TEXTS: readonly Rule[] = [
  // A token may itself be a quote.
  [/(?<=Unexpected token )'.{1,2}'(?=, )/s, VALUE, 'JSON'],
  // V8 quotes the text it could not parse, including the quotes in it, and adds dots where it was cut.
  [/(?:\.{3})?".*"(?:\.{3})?(?= is not valid JSON)/s, VALUE, 'is not valid JSON'],
  // Since Node 22 the message contains the position twice.
  [/ \(line \d+ column \d+\)/, '', ' (line '],
  // Tags of XML and HTML.
  [/<\/?[A-Za-z!?][\w:.-]{0,80}(?:\s[^<>]{0,300})?>/g, ' ', '</'],
  // Oracle quotes each part: `"SHOP"."ORDERS"."PRICE"`.
  [
    /"[A-Z][\w$#]{0,60}"(?:\."[A-Z][\w$#]{0,60}"){1,2}/g,
    (found) => found.replaceAll('"', ''),
    '"."',
  ],
  // Postgres: `Key (email)=(bob@example.org) already exists`.
  [/\)=\([^)]*\)/g, `) ${VALUE}`, ')=('],
  // The query of a URL, so that a URL with one and a URL without one are equal.
  [/(\/[\w.~%@:+-]*)\?[\w.~%@:+,;&[\]-]*=[^\s"'`)]*/g, '$1', '?'],
  // The same API has another host for each region and customer.
  [/(?<=[a-z]:\/\/)[^\s/"'`,;)\]<>]{1,255}/g, VALUE, '://'],
  [
    /(?<![\w.?/-])([A-Za-z_][\w.-]{0,40})=("[^"]{0,200}"|'[^']{0,200}'|[^\s,;&()[\]{}"']+)/g,
    (found, key, value) =>
      KIND_KEY.test(key) && KIND_VALUE.test(value)
        ? found.replaceAll(/["']/g, '')
        : `${key}=${VALUE}`,
    '=',
  ],
  // A list in brackets. `[Errno 2]` is not one.
  [
    /(?<![\w\])])\[[^\][{}]{0,300}\]/g,
    (found) => (found.includes(',') || found === '[]' ? VALUE : found),
    '[',
  ],
  [QUOTES, replaceQuote],
]

/** A word or a list of words behind a colon, at the end of a clause: `unknown tags: red, blue`. */
const LISTED: Rule = [
  /(?<![\p{L}\w])([\p{L}_]{2,40}): ((?:[\p{Ll}<>-]{1,40}(?:, ?| and ))*[\p{Ll}<>-]{1,40})(?=[;)}\]]|\.?$)/gu,
  (found, key, list) =>
    KIND_KEY.test(key) || REASON_NEXT.test(key) || !isListOfNames(list)
      ? found
      : `${key}: ${VALUE}`,
  ': ',
]

const CLAUSE: readonly Rule[] = [LISTED, ...RUNS]

/**
 * Returns the message with the values in it replaced. With `isCoarse`, it returns only its keywords: for failures
 * whose type, code or stack also say what they are.
 */
export function normaliseMessage(message: string, isCoarse = false): string {
  const text = clip(message, READ_MAX)
  const cause = CAUSE.exec(text)
  if (cause === null) return clip(replaced(text, isCoarse), NORMALISED_MAX)
  const outer = clip(replaced(text.slice(0, cause.index), isCoarse), OUTER_NORMALISED_MAX)
  const root = replaced(text.slice(cause.index + cause[0].length), isCoarse)
  return clip(`${outer}${cause[0]}${root}`, NORMALISED_MAX)
}

/** The text between an error and its root cause, with the type of the cause. */
const CAUSE = /; caused by (?:[\w$.]{1,100}: )?/

function replaced(message: string, isCoarse: boolean): string {
  const long = applied(LONG_TEXTS, message)
  // V8 quotes the start of the text that it could not parse.
  const folded = long.includes(' is not valid JSON') ? long : foldBodies(long)
  const text = applied(VALUES, applied(TEXTS, clip(folded, SIGNED_MAX)))
  if (isCoarse) return keywordsOf(text)
  return parts(text, '\n', ' ', (line) => parts(line, '; ', '; ', clause))
}

/** Maximum number of lines, and of clauses in a line. A list of issues is longer only if most of them are equal. */
const PARTS_MAX = 60

/** A payload with one bad line and one with five have the same problem: equal parts become one. */
function parts(
  text: string,
  separator: string,
  joint: string,
  each: (part: string) => string,
): string {
  const different = [...new Set(text.split(separator))].slice(0, PARTS_MAX)
  return [...new Set(different.map(each))].filter((part) => part !== '').join(joint)
}

function clause(text: string): string {
  const named = replaceNames(text.trim())
  return parts(applied(CLAUSE, named), ', ', ', ', (part) => part)
}

function applied(rules: readonly Rule[], message: string): string {
  let text = message
  for (const [from, to, needs = ''] of rules) {
    if (typeof needs === 'string' ? !text.includes(needs) : !needs.test(text)) continue
    // Also a function; the compiler has no overload for both types.
    text = text.replace(from, to as string)
  }
  return text
}

/** Returns true for a list in which no word belongs to the message. */
function isListOfNames(list: string): boolean {
  return list.split(/, ?| and /).every((word) => !MESSAGE_WORDS.has(word))
}

/** Returns the name of a table without its quotes and its schema. */
function tableOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1).replaceAll(/["`]/g, '')
}
