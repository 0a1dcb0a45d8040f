import type { styleText } from 'node:util'

export type Style = Parameters<typeof styleText>[0]

/** A text with a colour. It is escaped when it is printed, as any other text. */
export class Painted {
  readonly style: Style
  readonly text: string

  constructor(style: Style, text: string) {
    this.style = style
    this.text = text
  }
}

export type Printable = string | number | Painted

export const bold = (text: string): Painted => new Painted('bold', text)
export const dim = (text: string): Painted => new Painted('dim', text)
export const red = (text: string): Painted => new Painted('red', text)
export const green = (text: string): Painted => new Painted('green', text)
export const yellow = (text: string): Painted => new Painted('yellow', text)
