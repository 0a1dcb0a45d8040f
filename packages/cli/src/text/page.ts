import { styleText } from 'node:util'
import type { Output } from '../io.ts'
import { dim, Painted, type Printable } from './painted.ts'
import { safe, safeLines } from './safe.ts'
import { type Column, tableLines } from './table.ts'

/** A name and what it is; nothing is shown of one that is not known. */
export type Fact = readonly [name: string, value: Printable | undefined]

/**
 * What people read. Everything is made safe here, in one place: a command cannot forget it, because it
 * gives values and never text that is ready to print.
 */
export class Page {
  readonly #output: Output

  constructor(output: Output) {
    this.#output = output
  }

  /** A line; each value in it is made safe. */
  readonly line = (parts: TemplateStringsArray, ...values: readonly Printable[]): void => {
    let text = ''
    for (const [at, part] of parts.entries()) {
      const value = values[at]
      text += part + (value === undefined ? '' : this.shown(value))
    }
    this.#output.write(`${text}\n`)
  }

  /** Text of several lines, each moved in. */
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

  /** One under the other. */
  facts(facts: readonly Fact[]): void {
    const known = facts.filter(([, value]) => value !== undefined && value !== '')
    const width = Math.max(0, ...known.map(([name]) => name.length))
    for (const [name, value = ''] of known) this.line`${dim(name.padEnd(width))}  ${value}`
  }

  shown(value: Printable): string {
    if (!(value instanceof Painted)) return safe(String(value))
    if (!this.#output.hasColor) return safe(value.text)
    return styleText(value.style, safe(value.text), { validateStream: false })
  }
}
