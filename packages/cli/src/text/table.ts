import { Painted, type Printable } from './painted.ts'
import { safe } from './safe.ts'
import { cut, padEnd, padStart, widthOf } from './width.ts'

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => Printable
  /** Numbers are compared by their last digit. */
  readonly isNumber?: true
  /** May be made narrower when the terminal is, down to so many columns. */
  readonly least?: number
}

const GAP = 2

/** The cells of each line, safe and as wide as their column. */
export function tableLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
): readonly (readonly Printable[])[] {
  const head = columns.map(({ title }) => new Painted('dim', title) as Printable)
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

const textOf = (cell: Printable): string => (cell instanceof Painted ? cell.text : String(cell))

const mapped = (cell: Printable, act: (text: string) => string): Printable =>
  cell instanceof Painted ? new Painted(cell.style, act(cell.text)) : act(String(cell))

const safely = (cell: Printable): Printable => mapped(cell, safe)

/** As wide as the widest cell; what may be narrower gives way, the widest first. */
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

const canGive = <Row>({ least }: Column<Row>, width: number): boolean =>
  least !== undefined && width > least

function widest<Row>(columns: readonly Column<Row>[], widths: readonly number[]) {
  let found: number | undefined
  for (const [at, width] of widths.entries()) {
    if (!canGive(columns[at] as Column<Row>, width)) continue
    if (found === undefined || width > (widths[found] as number)) found = at
  }
  return found
}

function nextWidest<Row>(columns: readonly Column<Row>[], widths: readonly number[], but: number) {
  const others = widths.filter(
    (width, at) => at !== but && canGive(columns[at] as Column<Row>, width),
  )
  return Math.max(0, ...others)
}
