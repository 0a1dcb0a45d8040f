import { PaintedText, type Printable } from './painted.ts'
import { safe } from './safe.ts'
import { cut, padEnd, padStart, widthOf } from './width.ts'

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => Printable
  /** Aligned to the right, so that digits line up. */
  readonly isNumber?: true
  /** Minimum width of a column that may shrink on a narrow terminal. Undefined: it never shrinks. */
  readonly least?: number
}

const GAP = 2

/** Returns the cells of each line, escaped and padded to the width of their column. */
export function tableLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
): readonly (readonly Printable[])[] {
  const head = columns.map(({ title }) => new PaintedText('dim', title) as Printable)
  const lines = [head, ...rows.map((row) => columns.map((column) => safely(column.of(row))))]
  const widths = widthsOf(columns, lines, width)
  return lines.map((cells) =>
    cells.map((cell, at) => {
      const { isNumber } = columns[at] as Column<Row>
      return mapped(cell, (text) => {
        const fits = cut(text, widths[at] as number)
        return isNumber ? padStart(fits, widths[at] as number) : padEnd(fits, widths[at] as number)
      })
    }),
  )
}

const textOf = (cell: Printable): string => (cell instanceof PaintedText ? cell.text : String(cell))

const mapped = (cell: Printable, act: (text: string) => string): Printable =>
  cell instanceof PaintedText ? new PaintedText(cell.style, act(cell.text)) : act(String(cell))

const safely = (cell: Printable): Printable => mapped(cell, safe)

/** Returns the width of each column: its widest cell. If needed, shrinks columns, the widest first. */
function widthsOf<Row>(
  columns: readonly Column<Row>[],
  lines: readonly (readonly Printable[])[],
  width: number,
): readonly number[] {
  const widths = columns.map((_, at) =>
    Math.max(...lines.map((cells) => widthOf(textOf(cells[at] as Printable)))),
  )
  let over = widths.reduce((sum, one) => sum + one, 0) + GAP * (widths.length - 1) - width
  while (over > 0) {
    const at = widest(columns, widths)
    if (at === undefined) break
    const least = columns[at]?.least ?? 0
    const next = nextWidest(columns, widths, at)
    const less = Math.min(over, Math.max(1, (widths[at] as number) - Math.max(next, least)))
    widths[at] = (widths[at] as number) - less
    over -= less
  }
  return widths
}

const canShrink = <Row>({ least }: Column<Row>, width: number): boolean =>
  least !== undefined && width > least

function widest<Row>(columns: readonly Column<Row>[], widths: readonly number[]) {
  let found: number | undefined
  for (const [at, width] of widths.entries()) {
    if (!canShrink(columns[at] as Column<Row>, width)) continue
    if (found === undefined || width > (widths[found] as number)) found = at
  }
  return found
}

function nextWidest<Row>(columns: readonly Column<Row>[], widths: readonly number[], but: number) {
  const others = widths.filter(
    (width, at) => at !== but && canShrink(columns[at] as Column<Row>, width),
  )
  return Math.max(0, ...others)
}
