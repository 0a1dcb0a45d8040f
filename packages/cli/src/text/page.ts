import { styleText } from 'node:util'
import type { Output } from '../io.ts'
import { dim, PaintedText, type Printable } from './painted.ts'
import { safe, safeLines } from './safe.ts'
import { type Column, tableLines } from './table.ts'

/** A name and its value. A fact with an undefined value is not shown. */
export type Fact = readonly [name: string, value: Printable | undefined]

/**
 * Text output for people. All values are escaped here, in one place. Commands cannot forget it, because
 * they pass values and never finished text.
 */
export class Page {
  readonly #output: Output

  constructor(output: Output) {
    this.#output = output
  }

  /** Prints a line and escapes each value in it. */
  readonly line = (parts: TemplateStringsArray, ...values: readonly Printable[]): void => {
    let text = ''
    for (const [at, part] of parts.entries()) {
      const value = values[at]
      text += part + (value === undefined ? '' : this.shown(value))
    }
    this.#output.write(`${text}\n`)
  }

  /** Prints text of several lines, each indented. */
  block(text: string, indent: string = '  '): void {
    for (const line of safeLines(text)) this.#output.write(`${indent}${line}\n`)
  }

  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): void {
    for (const cells of tableLines(columns, rows, this.#output.columns)) {
      this.#output.write(
        `${cells
          .map((cell) => this.shown(cell))
          .join('  ')
          .trimEnd()}\n`,
      )
    }
  }

  /** Prints one fact per line. */
  facts(facts: readonly Fact[]): void {
    const known = facts.filter(([, value]) => value !== undefined && value !== '')
    const width = Math.max(0, ...known.map(([name]) => name.length))
    for (const [name, value = ''] of known) this.line`${dim(name.padEnd(width))}  ${value}`
  }

  shown(value: Printable): string {
    if (!(value instanceof PaintedText)) return safe(String(value))
    if (!this.#output.hasColor) return safe(value.text)
    return styleText(value.style, safe(value.text), { validateStream: false })
  }
}
