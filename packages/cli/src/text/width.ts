/** Characters that take two columns: East Asian wide and full-width forms, and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u
const MARK = /\p{M}/u

const widthOfOne = (character: string): number =>
  MARK.test(character) ? 0 : WIDE.test(character) ? 2 : 1

/** Returns the number of columns that an escaped text takes. */
export function widthOf(text: string): number {
  let width = 0
  for (const character of text) width += widthOfOne(character)
  return width
}

/** Cuts a text to `columns` columns and ends it with an ellipsis. */
export function cut(text: string, columns: number): string {
  // A character can have any number of combining marks. They take no column, so their count is limited too.
  if (text.length <= columns * MARKS_MAX && widthOf(text) <= columns) return text
  let kept = ''
  let width = 1
  for (const character of text) {
    width += widthOfOne(character)
    if (width > columns || kept.length >= columns * MARKS_MAX) break
    kept += character
  }
  return columns < 1 ? '' : `${kept}…`
}

/** 4 UTF-16 units per column. Every script in use needs fewer. */
const MARKS_MAX = 4

export const padEnd = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - widthOf(text)))

export const padStart = (text: string, width: number): string =>
  ' '.repeat(Math.max(0, width - widthOf(text))) + text
