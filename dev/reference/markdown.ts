/** Writes the Markdown of the reference pages. */

/** A generated page. `problems` lists everything that the page needs and the code lacks. */
export interface Page {
  readonly text: string
  readonly problems: readonly string[]
}

/** Returns a table. Pipes in cells are escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

export const code = (text: string): string => `\`${text}\``

/** Joins blocks with blank lines and adds the note that the page is generated. */
export function pageText(
  title: string,
  from: readonly string[],
  blocks: readonly string[],
): string {
  const note = `Generated from ${list(from.map(code))} by \`pnpm reference\`. Do not edit this page.`
  return `${[`# ${title}`, note, ...blocks].filter((block) => block !== '').join('\n\n')}\n`
}

/** Returns a list as text: `a, b and c`. */
export function list(items: readonly string[]): string {
  if (items.length < 2) return items.join('')
  return `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`
}

/** Returns the anchors of headings as GitHub creates them, one per heading in order. */
export function anchorsOf(headings: readonly string[]): readonly string[] {
  const used = new Map<string, number>()
  return headings.map((heading) => {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-')
    const count = used.get(slug) ?? 0
    used.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
}
