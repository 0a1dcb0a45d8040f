import { FILLERS, KIND_KEY, stemOf } from './dictionary.ts'
import { hasCaseless, isEntity, render, shapedWords } from './names.ts'
import { VALUE, type Word } from './word.ts'

/** A text with fewer known words than this share may be in another language. */
const ENGLISH_MIN = 0.4

/** Frequent words of other languages. */
const FOREIGN =
  /(?<![\p{L}'’])(?:nicht|für|ist|sind|wurde|kein|keine|keinen|und|der|das|bei|mit|hat|pas|est|une|les|des|pour|dans|sur|avec|el|los|una|para|por|con|tiene|não|em|uma|com|tem|il|di|che|per|non|della|nie|dla|jest|niet|het|een|voor|geen|och|inte|är|för|ikke|og|til|av|på|bir|için|не|для|нет)(?![\p{L}'’])/u

/** Words of the reasons of HTTP, which are capitalised and no names. */
const HTTP_WORDS: ReadonlySet<string> = new Set(
  'Not Found Bad Request Unauthorized Forbidden Conflict Gone Unprocessable Entity Content Too Many Requests Internal Server Error Service Unavailable Gateway Timeout Precondition Failed Locked'.split(
    ' ',
  ),
)

/**
 * Returns the keywords of a message, each once and in the order of the alphabet: the words of the dictionary, names of
 * the program, codes and paths. Unknown words are left out, because most of them are values. In another language,
 * capitalised words are left out instead. A message in letters without cases is unchanged.
 */
export function keywordsOf(message: string): string {
  const clauses = clausesOf(message).map((clause) => shapedWords(clause.trim()))
  if (hasCaseless(message) && clauses.some(isCaseless)) {
    return clauses.map((clause) => clause.map(render).join(' ')).join('; ')
  }
  const words: Word[] = []
  const names: string[] = []
  for (const clause of clauses) sortOut(clause, words, names)
  const known = words.flatMap(({ stem }) => stem ?? [])
  const isEnglish = known.length >= ENGLISH_MIN * words.length || !FOREIGN.test(message)
  const kept = isEnglish ? known : words.map(({ core }) => core).filter(isSmall)
  const keywords = new Set([...kept.filter((word) => !FILLERS.has(word)), ...names])
  return [...keywords].sort().join(' ')
}

/** Returns the different lines and clauses of a message. */
function clausesOf(message: string): readonly string[] {
  return /\n|; /.test(message) ? [...new Set(message.split(/\n|; /))] : [message]
}

const isCaseless = (clause: readonly Word[]): boolean =>
  clause.some(({ core, shape }) => shape === 'kept' && hasCaseless(core))

const isSmall = (word: string): boolean => /^[a-z]{2}/.test(word) || /^\p{Ll}{2}/u.test(word)

/** Adds the words of the language in a clause, and the names of the program in it. */
function sortOut(clause: readonly Word[], words: Word[], names: string[]): void {
  const isSentence = clause.some(({ core, isPlain }) => isPlain && isSmall(core))
  clause.forEach((word, at) => {
    if (word.shape === 'value') return
    if (!word.isPlain) names.push(...nameOf(word.core))
    else if (
      !isSentence ||
      isSmall(word.core) ||
      isNoName(word.core, clause[at - 1], clause[at + 1])
    )
      words.push(word)
  })
}

/**
 * Returns true for a capitalised word that is no name: the first one of a sentence, an entity before its id, and a
 * reason. Other capitalised words are part of a name, although the dictionary may have them: `High Street`.
 */
function isNoName(core: string, previous: Word | undefined, next: Word | undefined): boolean {
  if (previous === undefined || HTTP_WORDS.has(core)) return true
  if (/^\p{Lu}+$/u.test(core) && KIND_KEY.test(previous.core)) return true
  if (/[.:;!?]/.test(previous.after) && next?.shape === 'word') return true
  return isEntity(core.toLowerCase()) && next?.shape === 'value' && previous.shape === 'word'
}

/** Returns the name of the program in a word: a code, a path without its values, or a class, unless it looks like a brand. */
function nameOf(core: string): readonly string[] {
  if (core.includes('/')) return isMediaType(core) ? [] : [core.split('/').map(segmentOf).join('/')]
  // A word with a value in it is a value. `items[<v>].sku` is a path.
  if (core.includes(VALUE) ? !core.includes('[') : !/[\p{L}\d]/u.test(core)) return []
  const humps = /^(?:\p{Lu}\p{Ll}+){2,}$/u.test(core) ? core.split(/(?=\p{Lu})/u) : []
  return humps.every((hump) => stemOf(hump.toLowerCase()) !== undefined) ? [core] : []
}

const isMediaType = (core: string): boolean =>
  /^(?:image|audio|video|text|application|font|multipart|model)\//.test(core)

/** A part of a path that has an id, or that the dictionary does not have, is a value: `/shops/acme/orders`. */
function segmentOf(segment: string): string {
  if (/-.*<v>|<v>.*-/.test(segment)) return VALUE
  const isWord = /^[\p{L}.-]+$/u.test(segment) && !/\p{Ll}\p{Lu}/u.test(segment)
  return isWord && stemOf(segment.toLowerCase()) === undefined ? VALUE : segment
}
