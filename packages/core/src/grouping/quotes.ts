import { VALUE } from './word.ts'

/** An apostrophe inside a word is not a quote. */
export const QUOTES: RegExp =
  /"[^"]*"|`[^`]*`|(?<!\w)'[^']*'(?!\w)|[“„][^“”]*[“”]|«[^»]*»|‘[^‘’]*’/g

/** How many characters are read to the left and right: more than the longest word of the patterns below. */
const LOOK = 16

/** Words before a quote that mark a name of the program or its database. Such names do not vary by message. */
const NAMES_NEXT =
  /\b(?:constraint|column|relation|table|index|for key|type|field|propert(?:y|ies)|parameter|argument|option|attribute|header|module|package|reading|setting|invoke|method|function|class|required|missing)s?[ :(=]{1,3}$/i

/** The same for words after a quote. */
const NAMED_LAST =
  /^ (?:argument|property|field|column|parameter|option|must be|is required|is not allowed)/

/** `at "input.lines[0].sku"`: the path of a field. */
const FIELD_PATH = /^.[a-z_]\w*(?:\.[a-z_]\w*|\[\d+\])+.$/i

const NAME = /^.[\w$.:()[\]/-]{1,80}.$/

/** `with message "NOT_FOUND - no queue 'a'"`: the quoted text is itself a message. */
const QUOTES_MESSAGE = /(?:with|error) message:? $/

export function replaceQuote(found: string, ...rest: readonly unknown[]): string {
  const [at, text] = rest.slice(-2) as [number, string]
  const before = text.slice(Math.max(0, at - LOOK), at)
  const end = at + found.length
  if (NAME.test(found)) {
    const isPath = FIELD_PATH.test(found) && /\bat $/.test(before)
    const isNamed =
      isPath || NAMES_NEXT.test(before) || NAMED_LAST.test(text.slice(end, end + LOOK))
    if (isNamed) return found
  }
  if (/^.[a-z]{2,8}:\/\/\S*$/.test(found)) return found
  return QUOTES_MESSAGE.test(before) ? found.slice(1, -1).replace(QUOTES, replaceQuote) : VALUE
}
