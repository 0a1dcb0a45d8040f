/** 200 characters: an error message that fits on a line. */
const MAX_LENGTH = 200

/** Returns the text on one line, without control characters and passwords in URLs, bounded in length. */
export function oneLine(text: string, maxLength: number = MAX_LENGTH): string {
  const line = text
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replaceAll(/(\w:\/\/)[^\s/@]+@/g, '$1***@')
    .trim()
  return line.length <= maxLength ? line : `${line.slice(0, maxLength)}…`
}

/** The text of an object without a prototype, of a Proxy that throws, and of other values without a text. */
const NO_TEXT = 'a value that has no text'

/** Describes any thrown value, also one that cannot be converted to a text. */
export function describeError(error: unknown): string {
  try {
    return oneLine(error instanceof Error ? `${error.name}: ${error.message}` : String(error))
  } catch {
    return NO_TEXT
  }
}

/** Returns the message of any thrown value, unchanged. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return NO_TEXT
  }
}

/** Returns an error as it is, for a warning of the process, and any other thrown value as a text. */
export function warningOf(error: unknown): Error | string {
  try {
    return error instanceof Error ? error : oneLine(String(error))
  } catch {
    return NO_TEXT
  }
}

/** Returns a number with its noun: `1 run`, `1,200 runs`. */
export function countOf(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}

/** Returns a rounded duration: `250 ms`, `12 s`, `5 min`, `3 h`, `2 days`. */
export function describeMs(ms: number): string {
  const rounded = (unitMs: number) => Math.round(ms / unitMs)
  if (ms < 1_000) return `${ms} ms`
  if (ms < 120_000) return `${rounded(1_000)} s`
  if (ms < 7_200_000) return `${rounded(60_000)} min`
  if (ms < 172_800_000) return `${rounded(3_600_000)} h`
  return `${rounded(86_400_000)} days`
}
