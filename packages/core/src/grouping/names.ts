import {
  ACRONYMS,
  ENTITY_WORDS,
  GERMAN_ENTITY,
  KIND_KEY,
  MESSAGE_WORDS,
  NAME_JOINERS,
} from './dictionary.ts'
import { HONORIFIC, HOST_OR_FILE, VALUE, type Word, wordOf } from './word.ts'

/** Letters without cases, such as Chinese and Arabic ones. */
const CASELESS = /\p{Lo}/u

/** Returns true for a text with letters without cases. Most texts have no letter beyond Greek and Cyrillic, which is faster to check. */
export const hasCaseless = (text: string): boolean =>
  /[\u0590-\uffff]/.test(text) && CASELESS.test(text)

const LATIN_WORD = /(?<![\p{L}<])[a-z]{3,}/u

/** Words of German, where every noun is capitalised. */
const GERMAN =
  /(?<!\p{L})(?:nicht|für|ist|sind|wurde|wurden|kein|keine|keinen|und|oder|fehlt|fehlen|bereits|nur|bei|mit|kann|darf|vom|zum|zur)(?!\p{L})/u

/** Words that begin a German sentence before a noun. */
const GERMAN_START =
  /^(?:Für|Der|Die|Das|Den|Dem|Ein|Eine|Einen|Kein|Keine|Keinen|Bei|Im|Am|Mit|Von|Vom|Zum|Zur|Auf|Aus|In|An|Nach|Ohne|Es|Zu|Alle|Diese|Dieser|Dieses)$/

/** Replaces the words of a clause that look like names and codes. */
export function replaceNames(text: string): string {
  return shapedWords(text).map(render).join(' ')
}

export function render({ before, core, after, shape }: Word): string {
  return `${before}${shape === 'value' ? VALUE : core}${after}`
}

/** Returns the words of a clause. Words that look like names and codes have the shape `value`. */
export function shapedWords(text: string): readonly Word[] {
  const words = text.split(/\s+/).map(wordOf)
  // A Chinese word in an English message is a name. In a Chinese message it is part of the text.
  if (hasCaseless(text) && !LATIN_WORD.test(text)) keepCaseless(words)
  // Without a word in small letters, the message is a title: `Limit Reached`.
  if (!words.some(({ shape }) => shape === 'word')) return words
  words.forEach((word, at) => {
    if (isField(word, words, at)) word.shape = 'kept'
  })
  const hasNames = words.some(({ shape }) => shape === 'name')
  if (hasNames && GERMAN.test(text)) markGermanNames(words)
  else if (hasNames) markNames(words)
  words.forEach((word, at) => {
    if (isNameOfEntity(word, words, at)) word.shape = 'value'
  })
  return words
}

function keepCaseless(words: readonly Word[]): void {
  for (const word of words) if (hasCaseless(word.core)) word.shape = 'kept'
}

const coreAt = (words: readonly Word[], at: number): string => words[at]?.core ?? ''

/** A dotted name in small letters: the name of a field, a host, a queue or a file. */
const DOTTED = /^\p{Ll}\w*(?:\.\w+)+$/u

/** Words next to the name of a field. */
const BEFORE_FIELD =
  /^(?:field|property|column|path|attribute|parameter|argument|option|method|function|collection|table|relation|index)$/i
const AFTER_FIELD =
  /^(?:must|should|cannot be|is (?:required|undefined|null|not (?:a function|allowed|defined))|are required)(?: |$)/

/** Words before a name that is not chosen by the program. */
const BEFORE_NAME =
  /^(?:queue|topic|exchange|host|server|file|bucket|broker|domain|stream|database|node|service|consumer|subscription|lane|vhost|key)$/i

function isField({ core, shape }: Word, words: readonly Word[], at: number): boolean {
  if (shape !== 'value' || !DOTTED.test(core) || HOST_OR_FILE.test(core)) return false
  const previous = coreAt(words, at - 1)
  if (BEFORE_FIELD.test(previous)) return true
  // `UNIQUE constraint failed: orders.number`.
  if (previous === 'failed' && coreAt(words, at - 2) === 'constraint') return true
  const next = words.slice(at + 1, at + 5).map((word) => word.core)
  return AFTER_FIELD.test(next.join(' ')) && !BEFORE_NAME.test(previous)
}

/** In German, the first noun of a run may say what it is: `Kunde Müller`. A noun alone is not a name. */
function markGermanNames(words: readonly Word[]): void {
  words.forEach((word, at) => {
    if (word.shape !== 'name' || GERMAN_START.test(word.core)) return
    const end = endOfRun(word, words, at)
    const isPlace = /^(?:in|nach|aus|von|an)$/.test(coreAt(words, at - 1))
    const start = GERMAN_ENTITY.test(word.core) ? at + 1 : at
    if (end > at + 1 || isPlace) mark(words.slice(start, end), 'value')
  })
}

function markNames(words: readonly Word[]): void {
  words.forEach((word, at) => {
    if (word.shape !== 'name' && !isPartOfName(word, words, at)) return
    const end = endOfRun(word, words, at)
    const isSentence = end === at + 1 && isFirstWord(words, at)
    mark(words.slice(at, end), isSentence ? 'kept' : 'value')
  })
}

function mark(words: readonly Word[], shape: 'kept' | 'value'): void {
  for (const word of words) word.shape = shape
}

/** Returns true for a word that is capitalised because it begins a sentence, or because it is a reason. */
function isFirstWord(words: readonly Word[], at: number): boolean {
  if (at === 0) return true
  return (
    isStart(words, at) && (words[at + 1]?.shape === 'word' || KIND_KEY.test(coreAt(words, at - 1)))
  )
}

/** Returns true for a capitalised word of the dictionary inside of a sentence, before a name: `in New York`. */
function isPartOfName({ after, shape }: Word, words: readonly Word[], at: number): boolean {
  if (shape !== 'title' || words[at + 1]?.shape !== 'name') return false
  return after === '' && !isStart(words, at)
}

/** Returns the place behind a run of names: `Ludwig van Beethoven`, `Rio de Janeiro`. */
function endOfRun(first: Word, words: readonly Word[], start: number): number {
  let end = start + 1
  let previous = first
  for (let at = end; !endsRun(previous); at += 1) {
    const word = words[at]
    if (word === undefined) break
    if (word.shape === 'name' || word.shape === 'title') end = at + 1
    else if (!NAME_JOINERS.has(word.core)) break
    previous = word
  }
  return end
}

/** Punctuation ends a run, except behind an initial: `J. Smith`. */
function endsRun({ core, after }: Word): boolean {
  return /[.:;!?)]/.test(after) && !/^\p{Lu}\p{Ll}?$/u.test(core)
}

/** Returns true for a word that begins a sentence. */
function isStart(words: readonly Word[], at: number): boolean {
  const previous = words[at - 1]
  if (previous === undefined) return true
  if (HONORIFIC.test(previous.core)) return false
  return /[.:;!?]$/.test(previous.after) || /^[-–—|>]*$/.test(previous.core)
}

/** Words before the name of an entity at the end of a message: `no route for warehouse berlin`. */
const INTRODUCES = /^(?:for|of|in|to|from|unknown|no|with|by|at|on|find|load|the|invalid)$/i
/** Words behind such a name. */
const FOLLOWS =
  /^(?:is|was|are|has|had|not|does|did|do|cannot|could|in|on|at|for|from|to|of|and|or|already|with|by|must|may|exceeds|[a-z]+ed)$/
/** Endings of words that describe an entity: `order cancelled`, `account missing`. */
const DESCRIBES = /(?:ed|ing|ly|able|ible|ful|less|en|s|ty|ion|ent|nce)$|\W/

/** Entities with names that the program chose. */
const HAS_FIELDS =
  /^(?:field|key|table|relation|property|entity|collection|resource|event|value|model|policy|role|feature|flag)$/i

export const isEntity = (word: string): boolean =>
  ENTITY_WORDS.has(word) || (word.endsWith('s') && ENTITY_WORDS.has(word.slice(0, -1)))

/** Returns true for a name behind the name of an entity: `tenant acme has no plan`, `voucher SUMMER`, `job send_mail`. */
function isNameOfEntity(
  { core, isQuoted, after, shape }: Word,
  words: readonly Word[],
  at: number,
): boolean {
  const entity = words[at - 1]
  if (entity?.after !== '' || isQuoted || !ENTITY_WORDS.has(entity.core.toLowerCase())) return false
  if (/^(?:\p{Ll}+_?<v>|[A-Z]{4,})$/u.test(core) && !ACRONYMS.has(core)) return true
  if (core.includes('_') && !HAS_FIELDS.test(entity.core)) return true
  if (BEFORE_NAME.test(entity.core) && isEntity(core)) return true
  if (shape !== 'word' || MESSAGE_WORDS.has(core) || DESCRIBES.test(core)) return false
  if (after === '' && at + 1 < words.length) return FOLLOWS.test(coreAt(words, at + 1))
  if (entity.before === '(' || INTRODUCES.test(coreAt(words, at - 2))) return true
  return after === ':' && isStart(words, at - 1)
}
