/** A filter that cannot be read. The message has the position, the reason and the correct form. */
export class FilterError extends Error {
  override readonly name = 'FilterError'
  /** Position of the problem in the text, from 0. */
  readonly position: number

  constructor(text: string, position: number, reason: string) {
    super(`${reason}\n  ${oneLine(text)}\n  ${' '.repeat(position)}^`)
    this.position = position
  }
}

/** Replaces each line break and tab by a space, so that the mark is below its position. */
const oneLine = (text: string) => text.replaceAll(/\s/g, ' ')
