type Row = Readonly<Record<string, unknown>>

/** Prints the story: the steps of the demo, and the first line of each kind in the service's log. */
export class Narrator {
  readonly #more = new Map<string, number>()

  heading(text: string): void {
    this.#summary()
    console.log(`\n== ${text}`)
  }

  say(text: string): void {
    console.log(`   ${text}`)
  }

  /** Prints a line of the service's log. */
  quote(line: string): void {
    const [kind = line] = /event=\S+( queue=\S+)?( from=.*?to=\S+)?/.exec(line) ?? []
    const seen = this.#more.get(kind)
    this.#more.set(kind, seen === undefined ? 0 : seen + 1)
    if (seen === undefined) console.log(`   | ${line}`)
  }

  /** Prints a statement and its result. */
  sql(text: string, rows: readonly Row[]): void {
    console.log(`   sql> ${text.trim().replaceAll('\n', '\n        ')}`)
    const shown = rows.map((row) => Object.values(row).map(String))
    const [first = {}] = rows
    const all = [Object.keys(first), ...shown]
    const widths = all[0]?.map((_, at) => Math.max(...all.map((cells) => cells[at]?.length ?? 0)))
    for (const cells of all) {
      const line = cells.map((cell, at) => cell.padEnd(widths?.[at] ?? 0)).join('  ')
      console.log(`        ${line.trimEnd()}`)
    }
  }

  end(text: string): void {
    this.#summary()
    console.log(`\n${text}`)
  }

  #summary(): void {
    const more = [...this.#more].filter(([, count]) => count > 0)
    const kinds = more.map(([kind, count]) => `${count} × ${kind.replace(/^event=/, '')}`)
    if (kinds.length > 0) console.log(`   | … and more lines: ${kinds.join(', ')}`)
    this.#more.clear()
  }
}
