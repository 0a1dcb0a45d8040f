import type { styleText } from 'node:util'

export type Style = Parameters<typeof styleText>[0]

/** A text with a colour. It is escaped when it is printed, as any other text. */
export class PaintedText {
  readonly style: Style
  readonly text: string

  constructor(style: Style, text: string) {
    this.style = style
    this.text = text
  }
}

export type Printable = string | number | PaintedText

export const bold = (text: string): PaintedText => new PaintedText('bold', text)
export const dim = (text: string): PaintedText => new PaintedText('dim', text)
export const red = (text: string): PaintedText => new PaintedText('red', text)
export const green = (text: string): PaintedText => new PaintedText('green', text)
export const yellow = (text: string): PaintedText => new PaintedText('yellow', text)
