/** Splits the description of an option into its meaning and its default. */

export interface Description {
  /** The description without the default; empty when it contains nothing else. */
  readonly meaning: string
  readonly default: string | undefined
}

/** A default in brackets, mostly with a range: `(1–10,000, default 50)`. */
const IN_BRACKETS = /\s*\((?:([^()]*?),\s*)?default:? ([^()]+)\)/
/** A sentence: `Default '30s'.` */
const SENTENCE = /(?:^|(?<=[.)`] ))Default:? (.+?)(?:\.(?= |$)|$)\s*/

export function describe(text: string): Description {
  const bracket = IN_BRACKETS.exec(text)
  if (bracket !== null) {
    const [whole, range, value = ''] = bracket
    return { meaning: tidy(text.replace(whole, range ? ` (${range})` : '')), default: value }
  }
  const sentence = SENTENCE.exec(text)
  if (sentence === null) return { meaning: tidy(text), default: undefined }
  const [whole, value = ''] = sentence
  return { meaning: tidy(text.replace(whole, '')), default: value }
}

const tidy = (text: string) => text.trim().replace(/([^.])$/, '$1.')

/** Returns a value as code, and a description of a value as text. */
export function shownDefault(value: string): string {
  return /^('[^']*'|[\d.,]+|true|false|0o\d+)$/.test(value) ? `\`${value}\`` : value
}
