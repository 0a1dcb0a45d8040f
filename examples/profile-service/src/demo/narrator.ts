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

  quote(line: string): void {
    const [kind = line] = /level=\S+ event=\S+/.exec(line) ?? []
    const seen = this.#more.get(kind)
    this.#more.set(kind, seen === undefined ? 0 : seen + 1)
    if (seen === undefined) console.log(`   | ${line.replace(/^at=\S+ /, '')}`)
  }

  end(text: string): void {
    this.#summary()
    console.log(`\n${text}`)
  }

  #summary(): void {
    const more = [...this.#more].filter(([, count]) => count > 0)
    const kinds = more.map(([kind, count]) => `${count} ${kind.replace(/.*event=/, '')}`)
    if (kinds.length > 0) console.log(`   | … and more lines: ${kinds.join(', ')}`)
    this.#more.clear()
  }
}
