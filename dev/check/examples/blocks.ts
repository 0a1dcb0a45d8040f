import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A TypeScript block of a page. */
export interface Block {
  readonly page: string
  /** Line of the page before the first line of the block. */
  readonly line: number
  readonly text: string
  /** The page marks it as a program: the proof `readme` or a test runs it and compares its output. */
  readonly isProgram: boolean
  /** The imports of earlier blocks that this block uses. */
  readonly inherited: string
}

interface Import {
  readonly name: string
  readonly statement: string
}

/** Returns one statement for each imported name. */
function importsOf(text: string): readonly Import[] {
  const named = /^import (type )?\{([^}]*)\} from ('.*?')/gm
  return [...text.matchAll(named)].flatMap(([, type = '', names = '', from]) =>
    names.split(',').flatMap((entry) => {
      const name = entry.trim().split(/\s/).at(-1) ?? ''
      const statement = `import ${type}{ ${entry.trim()} } from ${from}`
      return name === '' ? [] : [{ name, statement }]
    }),
  )
}

/** Declares, imports or receives the name. */
const declares = (text: string, name: string) =>
  importsOf(text).some((own) => own.name === name) ||
  new RegExp(`\\b(const|let|function|class|interface|type) ${name}\\b`).test(text)

const uses = (text: string, name: string) => new RegExp(`\\b${name}\\b`).test(text)

/** Returns the TypeScript blocks of a page. A block may use what earlier blocks of its page import. */
export function blocksIn(root: string, page: string): readonly Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  const known = new Map<string, string>()
  const fenced = /(<!-- program: .* -->\n)?^```(?:ts|tsx|typescript)\n([\s\S]*?)^```$/gm
  return [...text.matchAll(fenced)].map((found) => {
    const [, mark = '', block = ''] = found
    const inherited = [...known]
      .filter(([name]) => uses(block, name) && !declares(block, name))
      .map(([, statement]) => statement)
    for (const { name, statement } of importsOf(block)) known.set(name, statement)
    const line = text.slice(0, found.index + mark.length).split('\n').length
    const isProgram = mark !== ''
    return { page, line, text: block, isProgram, inherited: inherited.join('\n') }
  })
}

/** A block that is treated differently, and why. */
export type ListedBlock = readonly [page: string, start: string, reason: string]

export const isListed = ({ page, text }: Block, list: readonly ListedBlock[]): boolean =>
  list.some(([of, start]) => of === page && text.startsWith(start))

/** Returns the entries that fit no block. */
export const unusedEntries = (
  blocks: readonly Block[],
  list: readonly ListedBlock[],
): readonly ListedBlock[] =>
  list.filter((entry) => !blocks.some((block) => isListed(block, [entry])))

export const prints = ({ text }: Block): boolean => /\bconsole\.log\(/.test(text)
